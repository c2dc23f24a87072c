"""Which services use something: what a model or a compute target is asked before it is deleted."""

from __future__ import annotations

from lapis.server.control.stores import Stores


class ServiceUses:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def of_model(self, workspace_id: str, asset_id: str) -> list[str]:
        """The services that a model serves in, by name."""
        return [
            service.name
            for service in self._stores.services.of_workspace(workspace_id)
            if any(asset_id == model.asset_id for slot in service.slots for model in slot.content.models)
        ]

    def of_target(self, workspace_id: str, target: str) -> list[str]:
        """The services on a compute target, by name."""
        return [each.name for each in self._stores.services.of_workspace(workspace_id) if each.target == target]
