"""MySQL as a datastore."""

from lapis.sdk.later import stand_in as _stand_in

AzureMySqlDatastore = _stand_in("azureml.data.azure_my_sql_datastore.AzureMySqlDatastore")
