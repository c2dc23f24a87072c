"""A parallel step, shown in a notebook."""

from lapis.sdk.later import stand_in as _stand_in

ParallelRunStepDetails = _stand_in("azureml.widgets.ParallelRunStepDetails")
