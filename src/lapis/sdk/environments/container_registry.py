"""Where a container image is fetched from, and with which name and password."""

from __future__ import annotations

from typing import Any

from lapis.sdk.config.run_config_element import Field, RunConfigElement, section


class RegistryIdentity(RunConfigElement):
    """The managed identity that may fetch from a registry."""

    _fields = {"client_id": Field("clientId"), "resource_id": Field("resourceId")}

    def __init__(self) -> None:
        self.client_id: str | None = None
        self.resource_id: str | None = None


class ContainerRegistry(RunConfigElement):
    """The registry of an image. Empty means: the image's name says it all, and it is public."""

    _fields = {
        "address": Field("address"),
        "username": Field("username"),
        "password": Field("password", secret=True),
        "registry_identity": Field("registryIdentity", read=section(RegistryIdentity)),
    }

    def __init__(self) -> None:
        self.address: str | None = None
        self.username: str | None = None
        self.password: str | None = None
        self.registry_identity: Any = None
