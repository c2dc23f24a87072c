"""Single machines that one person works on."""

from lapis.sdk.later import stand_in as _stand_in

ComputeInstance = _stand_in("azureml.core.compute.ComputeInstance")
ComputeInstanceProvisioningConfiguration = _stand_in(
    "azureml.core.compute.computeinstance.ComputeInstanceProvisioningConfiguration"
)
ComputeInstanceStatus = _stand_in("azureml.core.compute.computeinstance.ComputeInstanceStatus")
