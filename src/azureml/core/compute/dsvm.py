"""Data science virtual machines."""

from lapis.sdk.later import stand_in as _stand_in

DsvmCompute = _stand_in("azureml.core.compute.DsvmCompute")
DsvmProvisioningConfiguration = _stand_in("azureml.core.compute.dsvm.DsvmProvisioningConfiguration")
