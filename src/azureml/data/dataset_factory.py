"""How datasets are made."""

from lapis.sdk.file_dataset import FileDatasetFactory as FileDatasetFactory
from lapis.sdk.later import stand_in as _stand_in

DataType = _stand_in("azureml.data.DataType")
TabularDatasetFactory = _stand_in("azureml.data.dataset_factory.TabularDatasetFactory")
