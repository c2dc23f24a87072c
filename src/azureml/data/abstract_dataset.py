"""What all datasets have in common."""

from lapis.sdk.abstract_dataset import AbstractDataset as AbstractDataset
