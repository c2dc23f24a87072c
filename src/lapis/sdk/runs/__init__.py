"""Experiments and runs: submitted, followed, read."""

from lapis.later import load_late

load_late(__name__)
