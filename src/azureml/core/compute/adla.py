"""Data Lake Analytics as a compute target."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

AdlaCompute = _stand_in("azureml.core.compute.AdlaCompute")
DataLakeAnalyticsAttachConfiguration = _stand_in("azureml.core.compute.adla.DataLakeAnalyticsAttachConfiguration")
