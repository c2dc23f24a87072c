"""Single machines that one person works on."""

from lapis.sdk.compute.compute_instance import ComputeInstance as ComputeInstance
from lapis.sdk.compute.compute_instance import (
    ComputeInstanceProvisioningConfiguration as ComputeInstanceProvisioningConfiguration,
)
from lapis.sdk.compute.compute_instance import ComputeInstanceStatus as ComputeInstanceStatus
