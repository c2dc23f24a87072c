"""Data science virtual machines."""

from lapis.sdk.base.missing_names import stand_in as _stand_in
from lapis.sdk.compute.attached_compute import DsvmCompute as DsvmCompute

DsvmProvisioningConfiguration = _stand_in("azureml.core.compute.dsvm.DsvmProvisioningConfiguration")
