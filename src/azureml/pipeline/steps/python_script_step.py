"""A step that runs a Python script."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

PythonScriptStep = _stand_in("azureml.pipeline.steps.PythonScriptStep")
