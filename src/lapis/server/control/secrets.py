"""The key vault of a workspace: secrets under names, sealed where they are kept."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lapis.domain.keyvault import MOST_AT_ONCE, check_secret_name, check_secret_value
from lapis.domain.values import Value
from lapis.errors import UserErrorException
from lapis.server.control.sealing import Sealing
from lapis.server.control.stores import Stores
from lapis.server.store.assets import SECRET, Asset


@dataclass(frozen=True)
class NewSecret(Value):
    name: str
    value: str = field(repr=False)
    content_type: str = ""


class Secrets:
    def __init__(self, stores: Stores, sealing: Sealing, now: Callable[[], float]) -> None:
        self._stores = stores
        self._sealing = sealing
        self._now = now

    def set(self, workspace_id: str, secrets: list[NewSecret]) -> None:
        """Keep them; one that is there gets the new value. None is kept if one cannot be."""
        _check_count(len(secrets))
        for each in secrets:
            check_secret_value(check_secret_name(each.name), each.value)
        for each in secrets:
            self._keep(workspace_id, each)
        self._sealing.forget_known(workspace_id)

    def get(self, workspace_id: str, names: list[str]) -> dict[str, dict[str, str] | None]:
        """By name, with their values; None for one that is not there."""
        _check_count(len(names))
        found = {name: self._stores.assets.find(workspace_id, SECRET, check_secret_name(name)) for name in names}
        return {name: self._opened(there[0]) if there else None for name, there in found.items()}

    def names(self, workspace_id: str) -> list[dict[str, str]]:
        """Without their values."""
        found = self._stores.assets.find(workspace_id, SECRET)
        return [{"name": each.name, "content_type": each.body["content_type"]} for each in found]

    def delete(self, workspace_id: str, names: list[str]) -> None:
        """One that is not there is no error: whoever asks again after a lost reply gets the same answer."""
        _check_count(len(names))
        for name in map(check_secret_name, names):
            self._stores.assets.remove(workspace_id, SECRET, name)
        self._sealing.forget_known(workspace_id)

    def _keep(self, workspace_id: str, new: NewSecret) -> None:
        body = {"sealed": self._sealing.seal_whole(workspace_id, new.value), "content_type": new.content_type[:255]}
        asset = Asset(str(uuid.uuid4()), workspace_id, SECRET, new.name, self._now(), body=body)
        kept = self._stores.assets.add(asset, lambda there: there)
        if kept.body != body:
            self._stores.assets.change(workspace_id, kept.id, lambda stored: replace(stored, body=body))

    def _opened(self, asset: Asset) -> dict[str, str]:
        value = self._sealing.opened(asset.workspace_id, asset.body["sealed"])
        return {"value": value, "content_type": asset.body["content_type"]}


def _check_count(count: int) -> None:
    if count > MOST_AT_ONCE:
        raise UserErrorException(f"{count} secrets at once are too many: {MOST_AT_ONCE} at most.")
