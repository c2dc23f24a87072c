"""Statistics of a dataset."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatasetProfile = _stand_in("azureml.data.dataset_profile.DatasetProfile")
