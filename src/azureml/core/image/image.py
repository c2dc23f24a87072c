"""What all images have in common."""

from lapis.sdk.image import Asset as Asset
from lapis.sdk.image import Image as Image
from lapis.sdk.image import ImageConfig as ImageConfig
from lapis.sdk.image import TargetRuntime as TargetRuntime
