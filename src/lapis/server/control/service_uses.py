"""Which services use something: what a model or a compute target is asked before it is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lapis.server.control.stores import Stores
from lapis.server.store.assets import SERVICE, Asset


class ServiceUses:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def of_model(self, workspace_id: str, asset_id: str) -> list[str]:
        """The services that a model serves in, by name."""
        return [
            each.name
            for each in self._stores.assets.find(workspace_id, SERVICE)
            if any(asset_id == model["asset_id"] for model in _all_models(each))
        ]

    def of_target(self, workspace_id: str, target: str) -> list[str]:
        """The services on a compute target, by name."""
        return [each.name for each in self._stores.assets.find(workspace_id, SERVICE) if each.body["target"] == target]


def _all_models(asset: Asset) -> list[Mapping[str, Any]]:
    slots = [
        slot
        for each in asset.body["versions"].values()
        for slot in (each["wanted"], each["serving"])
        if slot is not None
    ]
    return [model for slot in slots for model in slot["content"]["models"]]
