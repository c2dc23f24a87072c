"""How the statistics of a dataset are to be computed."""

from lapis.sdk.later import stand_in as _stand_in

DatasetProfileRunConfig = _stand_in("azureml.data.dataset_profile_run_config.DatasetProfileRunConfig")
