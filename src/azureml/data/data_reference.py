"""A path on a datastore, made available to a run."""

from lapis.sdk.later import stand_in as _stand_in

DataReference = _stand_in("azureml.data.data_reference.DataReference")
