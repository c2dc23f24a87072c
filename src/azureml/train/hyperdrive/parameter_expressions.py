"""The distributions that hyperparameters are drawn from."""

from lapis.sdk.later import stand_in as _stand_in

choice = _stand_in("azureml.train.hyperdrive.choice")
lognormal = _stand_in("azureml.train.hyperdrive.lognormal")
loguniform = _stand_in("azureml.train.hyperdrive.loguniform")
normal = _stand_in("azureml.train.hyperdrive.normal")
qlognormal = _stand_in("azureml.train.hyperdrive.qlognormal")
qloguniform = _stand_in("azureml.train.hyperdrive.qloguniform")
qnormal = _stand_in("azureml.train.hyperdrive.qnormal")
quniform = _stand_in("azureml.train.hyperdrive.quniform")
randint = _stand_in("azureml.train.hyperdrive.randint")
uniform = _stand_in("azureml.train.hyperdrive.uniform")
