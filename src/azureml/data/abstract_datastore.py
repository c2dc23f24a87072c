"""What all datastores have in common."""

from lapis.sdk.data.abstract_datastore import AbstractDatastore as AbstractDatastore
