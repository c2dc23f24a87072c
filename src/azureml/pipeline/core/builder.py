"""What pipelines are built of."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

PipelineData = _stand_in("azureml.pipeline.core.PipelineData")
PipelineStep = _stand_in("azureml.pipeline.core.PipelineStep")
StepSequence = _stand_in("azureml.pipeline.core.StepSequence")
