"""Container images and their configuration."""

from lapis.sdk.models.image import ContainerImage as ContainerImage
from lapis.sdk.models.image import ContainerImageConfig as ContainerImageConfig
