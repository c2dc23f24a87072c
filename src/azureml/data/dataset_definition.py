"""One definition of a dataset of the first kind."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatasetDefinition = _stand_in("azureml.data.dataset_definition.DatasetDefinition")
