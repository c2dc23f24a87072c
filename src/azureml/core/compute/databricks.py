"""Databricks as a compute target."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatabricksAttachConfiguration = _stand_in("azureml.core.compute.databricks.DatabricksAttachConfiguration")
DatabricksCompute = _stand_in("azureml.core.compute.DatabricksCompute")
