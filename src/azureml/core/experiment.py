"""Experiments."""

from lapis.sdk.runs.experiment import Experiment as Experiment
from lapis.sdk.runs.experiment import ViewType as ViewType
