"""A step on Data Lake Analytics."""

from lapis.sdk.later import stand_in as _stand_in

AdlaStep = _stand_in("azureml.pipeline.steps.AdlaStep")
