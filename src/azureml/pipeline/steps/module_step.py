"""A step made of a module."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

ModuleStep = _stand_in("azureml.pipeline.steps.ModuleStep")
