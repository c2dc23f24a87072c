"""What all datastores have in common."""

from lapis.sdk.datastore import AbstractDatastore as AbstractDatastore
