"""The configuration of a hyperparameter search."""

from lapis.sdk.training.sweep_config import HyperDriveConfig as HyperDriveConfig
from lapis.sdk.training.sweep_config import HyperDriveRunConfig as HyperDriveRunConfig
from lapis.sdk.training.sweep_config import PrimaryMetricGoal as PrimaryMetricGoal
