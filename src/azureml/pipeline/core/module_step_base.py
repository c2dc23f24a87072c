"""What the steps made of modules have in common."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

ModuleStepBase = _stand_in("azureml.pipeline.core.module_step_base.ModuleStepBase")
