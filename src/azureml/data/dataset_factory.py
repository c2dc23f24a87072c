"""How datasets are made."""

from lapis.sdk.data.file_dataset import FileDatasetFactory as FileDatasetFactory
from lapis.sdk.data.tabular_factory import TabularDatasetFactory as TabularDatasetFactory
from lapis.tables.types import DataType as DataType
