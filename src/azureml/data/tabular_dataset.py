"""Datasets of rows and columns."""

from lapis.sdk.data.tabular_dataset import TabularDataset as TabularDataset
