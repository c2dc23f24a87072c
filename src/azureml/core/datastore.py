"""Places that data is kept in."""

from lapis.sdk.datastore import Datastore as Datastore
