"""A step that many workers do at once."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

ParallelRunStep = _stand_in("azureml.pipeline.steps.ParallelRunStep")
