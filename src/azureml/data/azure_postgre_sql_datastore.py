"""PostgreSQL as a datastore."""

from lapis.sdk.data.database_datastore import AzurePostgreSqlDatastore as AzurePostgreSqlDatastore
