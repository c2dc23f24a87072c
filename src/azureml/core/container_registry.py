"""Where a container image is fetched from."""

from lapis.sdk.environments.container_registry import ContainerRegistry as ContainerRegistry
from lapis.sdk.environments.container_registry import RegistryIdentity as RegistryIdentity
