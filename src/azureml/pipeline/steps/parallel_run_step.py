"""A step that many workers do at once."""

from lapis.sdk.later import stand_in as _stand_in

ParallelRunStep = _stand_in("azureml.pipeline.steps.ParallelRunStep")
