"""Keeps services, as assets of their own kind of which there is one version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lapis.domain.service import BROKEN, ServiceRecord
from lapis.errors import WebserviceException
from lapis.server.store.assets import SERVICE, Asset, AssetStore

_COLUMNS = ("id", "workspace_id", "name", "created_at")


class ServiceStore:
    def __init__(self, assets: AssetStore) -> None:
        self._assets = assets

    def add(self, service: ServiceRecord) -> None:
        """Raises if there is one of that name."""

        def which(newest: Asset | None) -> Asset | None:
            if newest is not None:
                raise WebserviceException(f"A service named '{service.name}' is being made already.")
            return None

        self._assets.add(
            Asset(service.id, service.workspace_id, SERVICE, service.name, service.created_at, body=_body(service)),
            which,
        )

    def get(self, workspace_id: str, service_id: str) -> ServiceRecord:
        return _to_service(self._assets.get(workspace_id, service_id))

    def named(self, workspace_id: str, name: str) -> ServiceRecord | None:
        found = self._assets.find(workspace_id, SERVICE, name)
        return _to_service(found[0]) if found else None

    def of_workspace(self, workspace_id: str) -> list[ServiceRecord]:
        """By name."""
        return [_to_service(each) for each in self._assets.find(workspace_id, SERVICE)]

    def all(self) -> list[ServiceRecord]:
        """In every workspace."""
        return [_to_service(each) for each in self._assets.of_kind(SERVICE)]

    def count(self) -> int:
        return len(self._assets.of_kind(SERVICE))

    def count_failed(self) -> int:
        """How many have a version that failed."""
        return sum(any(version.wanted.state == BROKEN for version in each.versions.values()) for each in self.all())

    def change(self, service: ServiceRecord, how: Callable[[ServiceRecord], ServiceRecord]) -> ServiceRecord:
        """`how` sees the service as it is now, and returns it as it is to be. It may be asked again."""
        changed = self._assets.change(
            service.workspace_id, service.id, lambda stored: replace(stored, body=_body(how(_to_service(stored))))
        )
        return _to_service(changed)

    def remove(self, service: ServiceRecord) -> None:
        self._assets.remove(service.workspace_id, SERVICE, service.name)


def _body(service: ServiceRecord) -> dict[str, Any]:
    return {name: value for name, value in service.to_json().items() if name not in _COLUMNS}


def _to_service(asset: Asset) -> ServiceRecord:
    columns = {name: getattr(asset, name) for name in _COLUMNS}
    return ServiceRecord.from_json({**asset.body, **columns})
