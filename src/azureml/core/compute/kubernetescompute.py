"""Kubernetes clusters that run jobs."""

from lapis.sdk.base.missing_names import stand_in as _stand_in
from lapis.sdk.compute.attached_compute import KubernetesCompute as KubernetesCompute
from lapis.sdk.compute.attached_compute import (
    KubernetesComputeAttachConfiguration as KubernetesComputeAttachConfiguration,
)

KubernetesComputeStatus = _stand_in("azureml.core.compute.kubernetescompute.KubernetesComputeStatus")
