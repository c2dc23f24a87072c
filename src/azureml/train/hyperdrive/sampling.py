"""How the next hyperparameters are chosen."""

from lapis.sdk.training.sampling import BayesianParameterSampling as BayesianParameterSampling
from lapis.sdk.training.sampling import GridParameterSampling as GridParameterSampling
from lapis.sdk.training.sampling import HyperParameterSampling as HyperParameterSampling
from lapis.sdk.training.sampling import RandomParameterSampling as RandomParameterSampling
