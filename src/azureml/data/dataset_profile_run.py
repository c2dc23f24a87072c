"""The run that computes the statistics of a dataset."""

from lapis.sdk.later import stand_in as _stand_in

DatasetProfileRun = _stand_in("azureml.data.dataset_profile_run.DatasetProfileRun")
