"""Statistics of a dataset."""

from lapis.sdk.later import stand_in as _stand_in

DatasetProfile = _stand_in("azureml.data.dataset_profile.DatasetProfile")
