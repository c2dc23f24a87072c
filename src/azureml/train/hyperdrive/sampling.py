"""How the next hyperparameters are chosen."""

from lapis.sdk.sampling import BayesianParameterSampling as BayesianParameterSampling
from lapis.sdk.sampling import GridParameterSampling as GridParameterSampling
from lapis.sdk.sampling import HyperParameterSampling as HyperParameterSampling
from lapis.sdk.sampling import RandomParameterSampling as RandomParameterSampling
