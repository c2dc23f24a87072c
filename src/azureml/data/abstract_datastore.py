"""What all datastores have in common."""

from lapis.sdk.later import stand_in as _stand_in

AbstractDatastore = _stand_in("azureml.data.abstract_datastore.AbstractDatastore")
