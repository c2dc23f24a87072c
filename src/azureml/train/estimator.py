"""Estimators for any script."""

from lapis.sdk.estimator import Estimator as Estimator
from lapis.sdk.estimator import MMLBaseEstimator as MMLBaseEstimator
from lapis.sdk.estimator_distribution import Gloo as Gloo
from lapis.sdk.estimator_distribution import Mpi as Mpi
from lapis.sdk.estimator_distribution import Nccl as Nccl
from lapis.sdk.estimator_distribution import ParameterServer as ParameterServer
from lapis.sdk.estimator_run_config import MMLBaseEstimatorRunConfig as MMLBaseEstimatorRunConfig
