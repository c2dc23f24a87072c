"""A step that runs a Python script."""

from lapis.sdk.later import stand_in as _stand_in

PythonScriptStep = _stand_in("azureml.pipeline.steps.PythonScriptStep")
