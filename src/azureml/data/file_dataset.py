"""Datasets of files."""

from lapis.sdk.data.file_dataset import FileDataset as FileDataset
