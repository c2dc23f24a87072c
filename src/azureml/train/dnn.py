"""Estimators for deep learning."""

from lapis.sdk.training.estimator_distribution import Gloo as Gloo
from lapis.sdk.training.estimator_distribution import Mpi as Mpi
from lapis.sdk.training.estimator_distribution import Nccl as Nccl
from lapis.sdk.training.estimator_distribution import ParameterServer as ParameterServer
from lapis.sdk.training.framework_estimators import Chainer as Chainer
from lapis.sdk.training.framework_estimators import PyTorch as PyTorch
from lapis.sdk.training.framework_estimators import TensorFlow as TensorFlow
