"""A step on Data Lake Analytics."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

AdlaStep = _stand_in("azureml.pipeline.steps.AdlaStep")
