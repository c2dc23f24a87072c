"""What all images have in common."""

from lapis.sdk.models.image import Asset as Asset
from lapis.sdk.models.image import Image as Image
from lapis.sdk.models.image import ImageConfig as ImageConfig
from lapis.sdk.models.image import TargetRuntime as TargetRuntime
