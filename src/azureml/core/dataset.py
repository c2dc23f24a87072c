"""Datasets by name and by kind."""

from lapis.sdk.data.dataset import Dataset as Dataset
