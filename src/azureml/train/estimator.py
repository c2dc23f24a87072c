"""Estimators for any script."""

from azureml.train.dnn import Gloo as Gloo
from azureml.train.dnn import Mpi as Mpi
from azureml.train.dnn import Nccl as Nccl
from azureml.train.dnn import ParameterServer as ParameterServer
from lapis.sdk.later import stand_in as _stand_in

Estimator = _stand_in("azureml.train.estimator.Estimator")
MMLBaseEstimator = _stand_in("azureml.train.estimator.MMLBaseEstimator")
MMLBaseEstimatorRunConfig = _stand_in("azureml.train.estimator.MMLBaseEstimatorRunConfig")
