"""The run that computes the statistics of a dataset."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatasetProfileRun = _stand_in("azureml.data.dataset_profile_run.DatasetProfileRun")
