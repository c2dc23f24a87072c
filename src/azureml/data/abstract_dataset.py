"""What all datasets have in common."""

from lapis.sdk.data.abstract_dataset import AbstractDataset as AbstractDataset
