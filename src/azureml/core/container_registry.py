"""Where a container image is fetched from."""

from lapis.sdk.container_registry import ContainerRegistry as ContainerRegistry
from lapis.sdk.container_registry import RegistryIdentity as RegistryIdentity
