"""How datasets are made."""

from lapis.sdk.later import stand_in as _stand_in

DataType = _stand_in("azureml.data.DataType")
FileDatasetFactory = _stand_in("azureml.data.dataset_factory.FileDatasetFactory")
TabularDatasetFactory = _stand_in("azureml.data.dataset_factory.TabularDatasetFactory")
