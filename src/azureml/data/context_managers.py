"""Mounts that last as long as a `with` block."""

from lapis.sdk.later import stand_in as _stand_in

DatasetContextManager = _stand_in("azureml.data.context_managers.DatasetContextManager")
DatastoreContextManager = _stand_in("azureml.data.context_managers.DatastoreContextManager")
