"""Data science virtual machines."""

from lapis.sdk.attached_compute import DsvmCompute as DsvmCompute
from lapis.sdk.later import stand_in as _stand_in

DsvmProvisioningConfiguration = _stand_in("azureml.core.compute.dsvm.DsvmProvisioningConfiguration")
