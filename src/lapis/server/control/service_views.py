"""A service as clients see it: its record, with what its fronts said a moment ago."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from lapis.domain import service_traffic as traffic
from lapis.domain.log_names import STD_LOG
from lapis.domain.run import RunRecord
from lapis.domain.service import BROKEN, READY, ServiceRecord, Slot, Version, state_of, worst
from lapis.domain.service_settings import LOCAL, PROFILED
from lapis.errors import NotFound
from lapis.server.control.runs import BUILD_LOG
from lapis.server.control.service_fronts import ServiceFronts
from lapis.server.control.stores import Stores
from lapis.server.control.waiting import WaitingRuns

_CONNECT = 0.3
_LINE = 1000  # bytes of a line of a log, amply


class ServiceViews:
    def __init__(
        self, stores: Stores, fronts: ServiceFronts, waiting: WaitingRuns, host: str, steady: Callable[[], float]
    ) -> None:
        self._stores = stores
        self._fronts = fronts
        self._waiting = waiting
        self._host = host
        self._steady = steady

    def of(self, service: ServiceRecord) -> dict[str, Any]:
        """Without its keys."""
        shares = traffic.shares(service)
        versions = {
            name: self._version(service, name, version, shares[name]) for name, version in service.versions.items()
        }
        state = worst([each["state"] for each in versions.values()])
        return {
            "id": service.id,
            "name": service.name,
            "created_at": service.created_at,
            "updated_at": service.updated_at,
            "created_by": service.created_by,
            **service.labels._asdict(),
            "kind": service.kind,
            "target": service.target,
            "settings": service.settings.to_json(),
            "default": service.default,
            "gateway": service.gateway,
            "state": "Deleting" if service.deleting else state,
            "error": next((each["error"] for each in versions.values() if each["error"]), None),
            "auth_enabled": service.uses_keys,
            "token_auth_enabled": service.uses_tokens,
            "address": versions[service.gateway]["address"],
            "models": versions[service.default]["models"],
            "versions": versions,
        }

    def _version(self, service: ServiceRecord, name: str, version: Version, share: int) -> dict[str, Any]:
        wanted, old = version.wanted, version.serving
        run = self._run(service.workspace_id, wanted.run)
        content = wanted.content
        return {
            "name": name,
            "port": version.port,
            "is_control": version.is_control,
            **version.labels._asdict(),
            "traffic": share,
            "state": state_of(wanted, self._answers(wanted, run, version.address)),
            "error": _shown_error(version),
            "revision": wanted.revision,
            "serving": wanted.revision if wanted.state == READY else old.revision if old else None,
            "restarts": wanted.restarts,
            "why": wanted.why,
            "run_id": wanted.run or next(reversed(wanted.runs), None),
            "stage": self._stage(run, wanted),
            "settings": wanted.settings.to_json(),
            "address": self._address(service, version),
            "models": [model.id for model in content.models],
            "image": content.image,
            "origin": None if content.origin is None else content.origin.to_json(),
            "environment": content.definition,
            "runtime": None if content.no_code is None else content.no_code.runtime,
            "front": self._fronts.front(wanted),
        }

    def _answers(self, wanted: Slot, run: RunRecord | None, address: str | None) -> bool:
        """By what its front said; a server that just came has not heard of it yet, and knocks."""
        if run is None or run.ended:
            return False
        if run.id in self._fronts.reports:
            front = self._fronts.front(wanted) or {}
            replicas = front.get("replicas") or []
            return front.get("state") == "ready" and any(each["state"] == "ready" for each in replicas)
        return wanted.state == READY and address is not None and _listens(address)

    def _address(self, service: ServiceRecord, version: Version) -> str:
        if service.kind == LOCAL:
            return f"localhost:{version.port}"
        return version.address or f"{self._host}:{version.port}"

    def _stage(self, run: RunRecord | None, wanted: Slot) -> str:
        """What happens just now, in words."""
        if wanted.restart_at is not None and wanted.restarts:
            left = max(0.0, wanted.restart_at - self._steady())
            return f"It ended by itself ({wanted.why}); start {wanted.restarts + 1} in {left:.0f} s"
        if run is None or not run.history:
            return "Waiting to be started"
        reason, until = self._waiting.why(run) or (run.history[-1].reason, run.history[-1].until)
        return reason + (f" ({until})" if until else "")

    def _run(self, workspace_id: str, run_id: str | None) -> RunRecord | None:
        try:
            return self._stores.runs.get(workspace_id, run_id) if run_id is not None else None
        except NotFound:
            return None

    def logs(self, workspace_id: str, name: str, version: str | None, lines: int, init: bool) -> str:
        """What the newest revision printed, through all its restarts; with `init` how its environment was built."""
        service = find_service(self._stores, workspace_id, name)
        said: list[str] = []
        for run_id in service.version(service.default if version is None else version).wanted.runs:
            try:
                file = self._stores.files.get(workspace_id, run_id, BUILD_LOG if init else STD_LOG)
            except NotFound:
                continue
            skip = max(0, file.size - lines * _LINE)
            said.append(b"".join(self._stores.files.read(workspace_id, run_id, file, skip)).decode("utf-8", "replace"))
        text = "Lapis: it ended, and was started again\n".join(said)
        return "\n".join(text.splitlines()[-lines:])


def find_service(stores: Stores, workspace_id: str, name: str) -> ServiceRecord:
    found = stores.services.named(workspace_id, name)
    if found is not None:
        return found
    names = [each.name for each in stores.services.of_workspace(workspace_id) if each.kind != PROFILED]
    workspace = stores.workspaces.find(id=workspace_id)[0]["name"]
    raise NotFound(
        f"WebserviceNotFound: No service named '{name}' in workspace '{workspace}'. Known: "
        f"{', '.join(names) or 'none'}."
    )


def _shown_error(version: Version) -> dict[str, Any] | None:
    wanted, old = version.wanted, version.serving
    if wanted.error is None:
        return None
    error = dict(wanted.error)
    if wanted.state == BROKEN and old is not None:
        error["message"] += f" Revision {old.revision} goes on answering."
    return error


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _CONNECT).close()
    except OSError:
        return False
    return True
