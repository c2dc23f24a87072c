"""A step on Databricks."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatabricksStep = _stand_in("azureml.pipeline.steps.DatabricksStep")
