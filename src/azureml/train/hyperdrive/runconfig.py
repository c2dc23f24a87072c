"""The configuration of a hyperparameter search."""

from lapis.sdk.later import stand_in as _stand_in

HyperDriveConfig = _stand_in("azureml.train.hyperdrive.HyperDriveConfig")
HyperDriveRunConfig = _stand_in("azureml.train.hyperdrive.HyperDriveRunConfig")
PrimaryMetricGoal = _stand_in("azureml.train.hyperdrive.PrimaryMetricGoal")
