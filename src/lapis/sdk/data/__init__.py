"""Datastores, data sets, and the data of a run."""

from lapis.later import load_late

load_late(__name__)
