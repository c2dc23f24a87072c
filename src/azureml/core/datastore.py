"""Places that data is kept in."""

from lapis.sdk.later import stand_in as _stand_in

Datastore = _stand_in("azureml.core.Datastore")
