"""SQL Database as a datastore."""

from lapis.sdk.data.database_datastore import AzureSqlDatabaseDatastore as AzureSqlDatabaseDatastore
