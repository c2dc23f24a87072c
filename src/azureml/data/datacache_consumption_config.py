"""How a run reads a cached dataset."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatacacheConsumptionConfig = _stand_in("azureml.data.datacache_consumption_config.DatacacheConsumptionConfig")
