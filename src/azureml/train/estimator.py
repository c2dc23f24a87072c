"""Estimators for any script."""

from lapis.sdk.training.estimator import Estimator as Estimator
from lapis.sdk.training.estimator import MMLBaseEstimator as MMLBaseEstimator
from lapis.sdk.training.estimator_distribution import Gloo as Gloo
from lapis.sdk.training.estimator_distribution import Mpi as Mpi
from lapis.sdk.training.estimator_distribution import Nccl as Nccl
from lapis.sdk.training.estimator_distribution import ParameterServer as ParameterServer
from lapis.sdk.training.estimator_run_config import MMLBaseEstimatorRunConfig as MMLBaseEstimatorRunConfig
