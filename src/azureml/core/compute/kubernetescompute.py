"""Kubernetes clusters that run jobs."""

from lapis.sdk.attached_compute import KubernetesCompute as KubernetesCompute
from lapis.sdk.attached_compute import KubernetesComputeAttachConfiguration as KubernetesComputeAttachConfiguration
from lapis.sdk.later import stand_in as _stand_in

KubernetesComputeStatus = _stand_in("azureml.core.compute.kubernetescompute.KubernetesComputeStatus")
