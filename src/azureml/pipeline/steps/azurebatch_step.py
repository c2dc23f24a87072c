"""A step on Azure Batch."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

AzureBatchStep = _stand_in("azureml.pipeline.steps.AzureBatchStep")
