"""Experiments."""

from lapis.sdk.experiment import Experiment as Experiment
from lapis.sdk.experiment import ViewType as ViewType
