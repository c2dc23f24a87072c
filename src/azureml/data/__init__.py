"""Datasets, datastores, and how runs read and write them."""

from azureml.data.datacache import DatacacheStore as DatacacheStore
from azureml.data.dataset_factory import DataType as DataType
from azureml.data.file_dataset import FileDataset as FileDataset
from azureml.data.output_dataset_config import HDFSOutputDatasetConfig as HDFSOutputDatasetConfig
from azureml.data.output_dataset_config import LinkFileOutputDatasetConfig as LinkFileOutputDatasetConfig
from azureml.data.output_dataset_config import (
    LinkTabularOutputDatasetConfig as LinkTabularOutputDatasetConfig,
)
from azureml.data.output_dataset_config import OutputFileDatasetConfig as OutputFileDatasetConfig
from azureml.data.tabular_dataset import TabularDataset as TabularDataset
from lapis.sdk.base.names import on_demand as _on_demand
from lapis.version import AZUREML_VERSION as VERSION

__version__ = VERSION
__getattr__, __dir__ = _on_demand(__name__, {})
