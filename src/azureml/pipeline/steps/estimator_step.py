"""A step that runs an estimator."""

from lapis.sdk.pipelines.script_steps import EstimatorStep as EstimatorStep
