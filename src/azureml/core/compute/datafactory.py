"""Data Factory as a compute target."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DataFactoryAttachConfiguration = _stand_in("azureml.core.compute.datafactory.DataFactoryAttachConfiguration")
DataFactoryCompute = _stand_in("azureml.core.compute.DataFactoryCompute")
DataFactoryProvisioningConfiguration = _stand_in(
    "azureml.core.compute.datafactory.DataFactoryProvisioningConfiguration"
)
