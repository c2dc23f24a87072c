"""What all compute targets have in common."""

from lapis.sdk.compute.compute_target import ComputeTarget as ComputeTarget
from lapis.sdk.compute.compute_target import ComputeTargetAttachConfiguration as ComputeTargetAttachConfiguration
from lapis.sdk.compute.compute_target import (
    ComputeTargetProvisioningConfiguration as ComputeTargetProvisioningConfiguration,
)
from lapis.sdk.compute.compute_target import ComputeTargetUpdateConfiguration as ComputeTargetUpdateConfiguration
