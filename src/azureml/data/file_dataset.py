"""Datasets of files."""

from lapis.sdk.file_dataset import FileDataset as FileDataset
