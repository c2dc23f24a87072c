"""SQL Database as a datastore."""

from lapis.sdk.database_datastore import AzureSqlDatabaseDatastore as AzureSqlDatabaseDatastore
