"""Places that data is kept in."""

from lapis.sdk.data.datastore import Datastore as Datastore
