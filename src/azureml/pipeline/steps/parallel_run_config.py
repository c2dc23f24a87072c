"""How a step is spread over many workers."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

ParallelRunConfig = _stand_in("azureml.pipeline.steps.ParallelRunConfig")
