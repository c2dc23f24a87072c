"""PostgreSQL as a datastore."""

from lapis.sdk.later import stand_in as _stand_in

AzurePostgreSqlDatastore = _stand_in("azureml.data.azure_postgre_sql_datastore.AzurePostgreSqlDatastore")
