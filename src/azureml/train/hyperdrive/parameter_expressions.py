"""The distributions that hyperparameters are drawn from."""

from lapis.sdk.training.parameter_expressions import choice as choice
from lapis.sdk.training.parameter_expressions import lognormal as lognormal
from lapis.sdk.training.parameter_expressions import loguniform as loguniform
from lapis.sdk.training.parameter_expressions import normal as normal
from lapis.sdk.training.parameter_expressions import qlognormal as qlognormal
from lapis.sdk.training.parameter_expressions import qloguniform as qloguniform
from lapis.sdk.training.parameter_expressions import qnormal as qnormal
from lapis.sdk.training.parameter_expressions import quniform as quniform
from lapis.sdk.training.parameter_expressions import randint as randint
from lapis.sdk.training.parameter_expressions import uniform as uniform
