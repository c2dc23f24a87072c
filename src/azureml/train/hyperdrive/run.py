"""The run of a hyperparameter search."""

from lapis.sdk.sweep_config import PrimaryMetricGoal as PrimaryMetricGoal
from lapis.sdk.sweep_run import HyperDriveRun as HyperDriveRun
