"""A step of automated machine learning."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

AutoMLStep = _stand_in("azureml.pipeline.steps.AutoMLStep")
AutoMLStepRun = _stand_in("azureml.pipeline.steps.AutoMLStepRun")
