"""SQL Database as a datastore."""

from lapis.sdk.later import stand_in as _stand_in

AzureSqlDatabaseDatastore = _stand_in("azureml.data.azure_sql_database_datastore.AzureSqlDatabaseDatastore")
