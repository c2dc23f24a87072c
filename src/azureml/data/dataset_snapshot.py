"""A dataset as it was at one time."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatasetSnapshot = _stand_in("azureml.data.dataset_snapshot.DatasetSnapshot")
