"""A step that copies data."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DataTransferStep = _stand_in("azureml.pipeline.steps.DataTransferStep")
