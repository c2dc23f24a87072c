"""Experiments and runs: submitted, followed, read."""
