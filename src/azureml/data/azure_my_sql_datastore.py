"""MySQL as a datastore."""

from lapis.sdk.data.database_datastore import AzureMySqlDatastore as AzureMySqlDatastore
