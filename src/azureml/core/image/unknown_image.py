"""An image of a kind that this release does not know."""

from lapis.sdk.models.image import UnknownImage as UnknownImage
