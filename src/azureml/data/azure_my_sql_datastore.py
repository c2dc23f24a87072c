"""MySQL as a datastore."""

from lapis.sdk.database_datastore import AzureMySqlDatastore as AzureMySqlDatastore
