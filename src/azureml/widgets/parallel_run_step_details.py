"""A parallel step, shown in a notebook."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

ParallelRunStepDetails = _stand_in("azureml.widgets.ParallelRunStepDetails")
