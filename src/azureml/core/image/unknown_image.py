"""An image of a kind that this release does not know."""

from lapis.sdk.later import stand_in as _stand_in

UnknownImage = _stand_in("azureml.core.image.UnknownImage")
