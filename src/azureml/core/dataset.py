"""Datasets by name and by kind."""

from lapis.sdk.dataset import Dataset as Dataset
