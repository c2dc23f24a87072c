"""How datasets are made."""

from lapis.sdk.file_dataset import FileDatasetFactory as FileDatasetFactory
from lapis.sdk.table_types import DataType as DataType
from lapis.sdk.tabular_factory import TabularDatasetFactory as TabularDatasetFactory
