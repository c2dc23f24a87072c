"""Clusters that grow and shrink with the queue."""

from lapis.sdk.compute.aml_compute import AmlCompute as AmlCompute
from lapis.sdk.compute.aml_compute import AmlComputeNodeStateCounts as AmlComputeNodeStateCounts
from lapis.sdk.compute.aml_compute import AmlComputeProvisioningConfiguration as AmlComputeProvisioningConfiguration
from lapis.sdk.compute.aml_compute import AmlComputeStatus as AmlComputeStatus
from lapis.sdk.compute.aml_compute import ScaleSettings as ScaleSettings
