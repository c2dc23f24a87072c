"""Datasets of rows and columns."""

from lapis.sdk.tabular_dataset import TabularDataset as TabularDataset
