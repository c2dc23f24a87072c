"""A web service of a kind that this release does not know."""

from lapis.sdk.models.unknown_webservice import UnknownWebservice as UnknownWebservice
