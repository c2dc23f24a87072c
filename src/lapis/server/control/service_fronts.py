"""What is said between the server and the fronts of services: how they fare, who may ask them, who else answers.

A front speaks through its agent, with the reports of the run that it lives in.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from lapis.domain import service_traffic as traffic
from lapis.domain.job import ServicePart
from lapis.domain.launch import FrontLaunch
from lapis.domain.run import RunRecord
from lapis.domain.service import ServiceRecord, Slot
from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.errors import NotFound
from lapis.server.control.access import Access
from lapis.server.control.events import Events
from lapis.server.control.stores import Stores
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
        steady: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._builds = builds
        self._access = access
        self._events = events
        self._sealer = Sealer(home)
        self._steady = steady
        self.reports: dict[str, tuple[float, Mapping[str, Any]]] = {}  # what fronts said last, by run, and when

    # -- what they say

    def told(self, run: RunRecord, told: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the front of a run says; what it is to know, if that is not what it knows."""
        part = run.job.service if run.job is not None else None
        if part is None:
            return None
        known = self.reports.get(run.id, (0.0, {}))[1]
        self.reports[run.id] = (self._steady(), told)
        before, after = ((each.get("front") or {}).get("state") for each in (known, told))
        if before != after or (known.get("front") or {}).get("error") != (told.get("front") or {}).get("error"):
            self._events.wake()
        try:
            service = self._stores.services.get(run.workspace_id, part.id)
        except NotFound:
            return None  # deleted: its run is about to be stopped
        if part.version not in service.versions:
            return None
        live = self.live(service, part.version)
        mark = _mark(live)
        return None if told.get("live") == mark else {**live, "mark": mark}

    def front(self, slot: Slot) -> Mapping[str, Any] | None:
        """What the front of a revision said a moment ago; None if it did not."""
        at, told = self.reports.get(slot.run or "", (0.0, {}))
        return told.get("front") if self._steady() - at < SILENT else None

    def has_heard(self, service: ServiceRecord, version: str, slot: Slot) -> bool:
        """Whether the front of a revision has taken up what it is to know."""
        told = self.reports[slot.run or ""][1]
        return bool(told.get("live") == _mark(self.live(service, version)))

    # -- what they are told

    def live(self, service: ServiceRecord, version: str) -> dict[str, Any]:
        """What a front takes up while it runs: who may ask, and who else answers."""
        keys = self.keys(service).values() if service.uses_keys else ()
        auth = {
            "keys": [hashlib.sha256(key.encode()).hexdigest() for key in keys],
            "token_secret": self._access.service_secret(service.id) if service.uses_tokens else None,
        }
        routes = traffic.routes(service) if version == service.gateway else []
        return {"auth": auth, "routes": [route._asdict() for route in routes]}

    def keys(self, service: ServiceRecord) -> dict[str, str]:
        return self._sealer.open(service.sealed, f"service '{service.name}'")

    def secrets(self, run: RunRecord, part: ServicePart) -> FrontLaunch:
        """What goes along when a front is launched, and is stored with no run."""
        service = self._stores.services.get(run.workspace_id, part.id)
        live = self.live(service, part.version)
        return FrontLaunch(live, _mark(live), None if part.sockets else self._own_lock())

    def _own_lock(self) -> dict[str, Any]:
        """The environment of the front itself, for machines where Lapis is not installed."""
        python = f"python={sys.version_info.major}.{sys.version_info.minor}"
        dependencies = {"name": "front", "dependencies": [python, {"pip": list(_PACKAGES)}]}
        definition = {"name": "front", "python": {"condaDependencies": dependencies}}
        return self._builds.resolve(definition, strict=False).lock.to_json()


def _mark(live: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(live, sort_keys=True).encode()).hexdigest()[:16]
