"""Datastores, data sets, and the data of a run."""
