"""Container images and their configuration."""

from lapis.sdk.image import ContainerImage as ContainerImage
from lapis.sdk.image import ContainerImageConfig as ContainerImageConfig
