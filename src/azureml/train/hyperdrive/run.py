"""The run of a hyperparameter search."""

from lapis.sdk.training.sweep_config import PrimaryMetricGoal as PrimaryMetricGoal
from lapis.sdk.training.sweep_run import HyperDriveRun as HyperDriveRun
