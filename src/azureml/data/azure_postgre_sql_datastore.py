"""PostgreSQL as a datastore."""

from lapis.sdk.database_datastore import AzurePostgreSqlDatastore as AzurePostgreSqlDatastore
