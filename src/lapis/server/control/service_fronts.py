"""What is said between the server and the fronts of services: how they fare, who may ask them, who else answers.

A front speaks through its agent, with the reports of the run that it lives in.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from lapis.domain import services as rules
from lapis.domain.run import RunRecord
from lapis.errors import NotFound
from lapis.server.control.access import Access
from lapis.server.control.environment_builds import EnvironmentBuilds
from lapis.server.control.events import Events
from lapis.server.control.stores import Stores
from lapis.server.store.assets import Asset
from lapis.server.store.sealed import Sealer

SILENT = 20.0  # seconds without a word from a front after which it counts as gone
_PACKAGES = ("httptools>=0.6", "uvloop>=0.20")


class ServiceFronts:
    def __init__(
        self,
        stores: Stores,
        builds: EnvironmentBuilds,
        access: Access,
        events: Events,
        home: str,
        now: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._builds = builds
        self._access = access
        self._events = events
        self._sealer = Sealer(home)
        self._now = now
        self.reports: dict[str, tuple[float, Mapping[str, Any]]] = {}  # what fronts said last, by run, and when

    # -- what they say

    def told(self, run: RunRecord, told: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the front of a run says; what it is to know, if that is not what it knows."""
        section = (run.job or {}).get("service")
        if section is None:
            return None
        known = self.reports.get(run.id, (0.0, {}))[1]
        self.reports[run.id] = (self._now(), told)
        before, after = ((each.get("front") or {}).get("state") for each in (known, told))
        if before != after or (known.get("front") or {}).get("error") != (told.get("front") or {}).get("error"):
            self._events.wake()
        try:
            asset = self._stores.assets.get(run.workspace_id, section["id"])
        except NotFound:
            return None  # deleted: its run is about to be stopped
        if section["version"] not in asset.body["versions"]:
            return None
        live = self.live(asset, section["version"])
        mark = _mark(live)
        return None if told.get("live") == mark else {**live, "mark": mark}

    def front(self, slot: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the front of a revision said a moment ago; None if it did not."""
        at, told = self.reports.get(slot["run"] or "", (0.0, {}))
        return told.get("front") if self._now() - at < SILENT else None

    def has_heard(self, asset: Asset, version: str, slot: Mapping[str, Any]) -> bool:
        """Whether the front of a revision has taken up what it is to know."""
        told = self.reports[slot["run"]][1]
        return bool(told.get("live") == _mark(self.live(asset, version)))

    # -- what they are told

    def live(self, asset: Asset, version: str) -> dict[str, Any]:
        """What a front takes up while it runs: who may ask, and who else answers."""
        kind, settings = asset.body["kind"], asset.body["settings"]
        keys = self.keys(asset).values() if rules.uses_keys(kind, settings) else ()
        tokens = rules.uses_tokens(kind, settings)
        auth = {
            "keys": [hashlib.sha256(key.encode()).hexdigest() for key in keys],
            "token_secret": self._access.service_secret(asset.id) if tokens else None,
        }
        return {"auth": auth, "routes": _routes(asset) if version == asset.body["gateway"] else []}

    def keys(self, asset: Asset) -> dict[str, str]:
        return self._sealer.open(asset.body["sealed"], f"service '{asset.name}'")

    def secrets(self, run: RunRecord) -> dict[str, Any]:
        """What goes along when a front is launched, and is stored with no run."""
        section = (run.job or {})["service"]
        asset = self._stores.assets.get(run.workspace_id, section["id"])
        live = self.live(asset, section["version"])
        found = {"live": live, "live_mark": _mark(live)}
        return found if section["sockets"] else {**found, "front_lock": self._own_lock()}

    def _own_lock(self) -> dict[str, Any]:
        """The environment of the front itself, for machines where Lapis is not installed."""
        python = f"python={sys.version_info.major}.{sys.version_info.minor}"
        dependencies = {"name": "front", "dependencies": [python, {"pip": list(_PACKAGES)}]}
        definition = {"name": "front", "python": {"condaDependencies": dependencies}}
        return self._builds.resolve(definition, strict=False).lock.to_json()


def _routes(asset: Asset) -> list[dict[str, Any]]:
    shares = [rules.Share(name, each["traffic"], each["address"]) for name, each in asset.body["versions"].items()]
    return rules.routes(shares, asset.body["gateway"], asset.body["default"])


def _mark(live: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(live, sort_keys=True).encode()).hexdigest()[:16]
