"""A step that runs an estimator."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

EstimatorStep = _stand_in("azureml.pipeline.steps.EstimatorStep")
