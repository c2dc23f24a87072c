"""How a run reads a dataset."""

from lapis.sdk.later import stand_in as _stand_in

DatasetConsumptionConfig = _stand_in("azureml.data.dataset_consumption_config.DatasetConsumptionConfig")
