"""Hyperparameter search."""

from azureml.train.hyperdrive.parameter_expressions import choice as choice
from azureml.train.hyperdrive.parameter_expressions import lognormal as lognormal
from azureml.train.hyperdrive.parameter_expressions import loguniform as loguniform
from azureml.train.hyperdrive.parameter_expressions import normal as normal
from azureml.train.hyperdrive.parameter_expressions import qlognormal as qlognormal
from azureml.train.hyperdrive.parameter_expressions import qloguniform as qloguniform
from azureml.train.hyperdrive.parameter_expressions import qnormal as qnormal
from azureml.train.hyperdrive.parameter_expressions import quniform as quniform
from azureml.train.hyperdrive.parameter_expressions import randint as randint
from azureml.train.hyperdrive.parameter_expressions import uniform as uniform
from azureml.train.hyperdrive.policy import BanditPolicy as BanditPolicy
from azureml.train.hyperdrive.policy import EarlyTerminationPolicy as EarlyTerminationPolicy
from azureml.train.hyperdrive.policy import MedianStoppingPolicy as MedianStoppingPolicy
from azureml.train.hyperdrive.policy import NoTerminationPolicy as NoTerminationPolicy
from azureml.train.hyperdrive.policy import TruncationSelectionPolicy as TruncationSelectionPolicy
from azureml.train.hyperdrive.run import HyperDriveRun as HyperDriveRun
from azureml.train.hyperdrive.runconfig import HyperDriveConfig as HyperDriveConfig
from azureml.train.hyperdrive.runconfig import HyperDriveRunConfig as HyperDriveRunConfig
from azureml.train.hyperdrive.runconfig import PrimaryMetricGoal as PrimaryMetricGoal
from azureml.train.hyperdrive.sampling import BayesianParameterSampling as BayesianParameterSampling
from azureml.train.hyperdrive.sampling import GridParameterSampling as GridParameterSampling
from azureml.train.hyperdrive.sampling import HyperParameterSampling as HyperParameterSampling
from azureml.train.hyperdrive.sampling import RandomParameterSampling as RandomParameterSampling
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
