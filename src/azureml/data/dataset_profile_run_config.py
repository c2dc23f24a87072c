"""How the statistics of a dataset are to be computed."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatasetProfileRunConfig = _stand_in("azureml.data.dataset_profile_run_config.DatasetProfileRunConfig")
