"""What all compute targets have in common."""

from lapis.sdk.later import stand_in as _stand_in

ComputeTarget = _stand_in("azureml.core.ComputeTarget")
ComputeTargetAttachConfiguration = _stand_in("azureml.core.compute.compute.ComputeTargetAttachConfiguration")
ComputeTargetProvisioningConfiguration = _stand_in(
    "azureml.core.compute.compute.ComputeTargetProvisioningConfiguration"
)
ComputeTargetUpdateConfiguration = _stand_in("azureml.core.compute.compute.ComputeTargetUpdateConfiguration")
