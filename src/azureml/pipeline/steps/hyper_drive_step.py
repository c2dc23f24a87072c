"""A step that searches for hyperparameters."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

HyperDriveStep = _stand_in("azureml.pipeline.steps.HyperDriveStep")
HyperDriveStepRun = _stand_in("azureml.pipeline.steps.HyperDriveStepRun")
