"""What goes wrong in a hyperparameter search."""

from lapis.sdk.later import stand_in as _stand_in

HyperDriveConfigException = _stand_in("azureml.train.hyperdrive.exceptions.HyperDriveConfigException")
HyperDriveException = _stand_in("azureml.train.hyperdrive.exceptions.HyperDriveException")
HyperDriveNotImplementedException = _stand_in("azureml.train.hyperdrive.exceptions.HyperDriveNotImplementedException")
HyperDriveRehydrateException = _stand_in("azureml.train.hyperdrive.exceptions.HyperDriveRehydrateException")
HyperDriveScenarioNotSupportedException = _stand_in(
    "azureml.train.hyperdrive.exceptions.HyperDriveScenarioNotSupportedException"
)
HyperDriveServiceException = _stand_in("azureml.train.hyperdrive.exceptions.HyperDriveServiceException")
