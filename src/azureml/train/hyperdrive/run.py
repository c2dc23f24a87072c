"""The run of a hyperparameter search."""

from azureml.train.hyperdrive.runconfig import PrimaryMetricGoal as PrimaryMetricGoal
from lapis.sdk.later import stand_in as _stand_in

HyperDriveRun = _stand_in("azureml.train.hyperdrive.HyperDriveRun")
