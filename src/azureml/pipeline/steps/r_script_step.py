"""A step that runs an R script."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

RScriptStep = _stand_in("azureml.pipeline.steps.RScriptStep")
