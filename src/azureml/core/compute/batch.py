"""Azure Batch as a compute target."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

BatchAttachConfiguration = _stand_in("azureml.core.compute.batch.BatchAttachConfiguration")
BatchCompute = _stand_in("azureml.core.compute.BatchCompute")
