"""The runs of pipelines and of their steps."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

PipelineRun = _stand_in("azureml.pipeline.core.PipelineRun")
StepRun = _stand_in("azureml.pipeline.core.StepRun")
StepRunOutput = _stand_in("azureml.pipeline.core.StepRunOutput")
