"""Mounts that last as long as a `with` block."""

from lapis.sdk.file_dataset import DatasetContextManager as DatasetContextManager
from lapis.sdk.later import stand_in as _stand_in

DatastoreContextManager = _stand_in("azureml.data.context_managers.DatastoreContextManager")
