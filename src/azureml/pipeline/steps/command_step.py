"""A step that runs a command."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

CommandStep = _stand_in("azureml.pipeline.steps.CommandStep")
