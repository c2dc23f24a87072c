"""Pipelines: built of steps, compiled to one value, submitted, and looked at while they run."""
