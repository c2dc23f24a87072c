"""How the next hyperparameters are chosen."""

from lapis.sdk.later import stand_in as _stand_in

BayesianParameterSampling = _stand_in("azureml.train.hyperdrive.BayesianParameterSampling")
GridParameterSampling = _stand_in("azureml.train.hyperdrive.GridParameterSampling")
HyperParameterSampling = _stand_in("azureml.train.hyperdrive.HyperParameterSampling")
RandomParameterSampling = _stand_in("azureml.train.hyperdrive.RandomParameterSampling")
