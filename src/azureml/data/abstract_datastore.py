"""What all datastores have in common."""

from lapis.sdk.abstract_datastore import AbstractDatastore as AbstractDatastore
