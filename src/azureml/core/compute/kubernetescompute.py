"""Kubernetes clusters that run jobs."""

from lapis.sdk.later import stand_in as _stand_in

KubernetesCompute = _stand_in("azureml.core.compute.KubernetesCompute")
KubernetesComputeAttachConfiguration = _stand_in(
    "azureml.core.compute.kubernetescompute.KubernetesComputeAttachConfiguration"
)
KubernetesComputeStatus = _stand_in("azureml.core.compute.kubernetescompute.KubernetesComputeStatus")
