"""A service as clients see it: its record, with what its fronts said a moment ago."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any

from lapis.domain import service_moves as moves
from lapis.domain import services as rules
from lapis.domain.log_names import STD_LOG
from lapis.domain.run import RunRecord
from lapis.domain.services import LOCAL, PROFILED
from lapis.errors import NotFound, WebserviceException
from lapis.server.control.access import Actor
from lapis.server.control.runs import BUILD_LOG
from lapis.server.control.shelf import Shelf
from lapis.server.store.assets import SERVICE, Asset

SILENT = 20.0  # seconds without a word from a front after which it counts as gone
_CONNECT = 0.3
_LINE = 1000  # bytes of a line of a log, amply
Reports = dict[str, tuple[float, Mapping[str, Any]]]  # what fronts said last, by run, and when


class ServiceViews:
    def __init__(self, shelf: Shelf, reports: Reports, host: str, now: Callable[[], float]) -> None:
        self._shelf = shelf
        self._reports = reports
        self._host = host
        self._now = now
        self.waiting: Callable[[RunRecord], tuple[str, str] | None] = lambda run: None  # for nodes: why, until when

    def front(self, slot: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the front of a revision said a moment ago; None if it did not."""
        at, told = self._reports.get(slot["run"] or "", (0.0, {}))
        return told.get("front") if self._now() - at < SILENT else None

    def of(self, asset: Asset) -> dict[str, Any]:
        """Without its keys."""
        body = asset.body
        shares = rules.effective({name: each["traffic"] for name, each in body["versions"].items()}, body["default"])
        versions = {
            name: {**self._version(asset, name, each), "traffic": shares[name]}
            for name, each in body["versions"].items()
        }
        main = versions[body["default"]]
        shown = {key: body[key] for key in ("kind", "target", "settings", "created_by", "updated_at", "description",
                                            "tags", "properties", "default", "gateway")}  # fmt: skip
        state = rules.worst([each["state"] for each in versions.values()])
        return {
            **shown,
            "id": asset.id,
            "name": asset.name,
            "created_at": asset.created_at,
            "state": "Deleting" if body["deleting"] else state,
            "error": next((each["error"] for each in versions.values() if each["error"]), None),
            "auth_enabled": rules.uses_keys(body["kind"], body["settings"]),
            "token_auth_enabled": uses_tokens(asset),
            "address": versions[body["gateway"]]["address"],
            "models": main["models"],
            "versions": versions,
        }

    def _version(self, asset: Asset, name: str, version: Mapping[str, Any]) -> dict[str, Any]:
        wanted, old = version["wanted"], version["serving"]
        run = self._run(asset.workspace_id, wanted["run"])
        content = wanted["content"]
        return {
            **{key: version[key] for key in ("port", "is_control", "description", "tags", "properties")},
            "name": name,
            "state": rules.state_of(wanted, self._answers(wanted, run, version["address"])),
            "error": _shown_error(wanted, old),
            "revision": wanted["revision"],
            "serving": wanted["revision"] if wanted["state"] == rules.READY else old["revision"] if old else None,
            "restarts": wanted["restarts"],
            "why": wanted["why"],
            "run_id": wanted["run"] or next(reversed(wanted["runs"]), None),
            "stage": self._stage(run, wanted),
            "settings": wanted["settings"],
            "address": self._address(asset, version),
            "models": [model["id"] for model in content["models"]],
            "image": content.get("image"),
            "origin": content.get("origin"),
            "environment": content.get("definition"),
            "runtime": (content.get("no_code") or {}).get("runtime"),
            "front": self.front(wanted),
        }

    def _answers(self, wanted: Mapping[str, Any], run: RunRecord | None, address: str | None) -> bool:
        """By what its front said; a server that just came has not heard of it yet, and knocks."""
        if run is None or run.ended:
            return False
        if run.id in self._reports:
            front = self.front(wanted) or {}
            replicas = front.get("replicas") or []
            return front.get("state") == "ready" and any(each["state"] == "ready" for each in replicas)
        return wanted["state"] == rules.READY and address is not None and _listens(address)

    def _address(self, asset: Asset, version: Mapping[str, Any]) -> str:
        if asset.body["kind"] == LOCAL:
            return f"localhost:{version['port']}"
        return version["address"] or f"{self._host}:{version['port']}"

    def _stage(self, run: RunRecord | None, wanted: Mapping[str, Any]) -> str:
        """What happens just now, in words."""
        if wanted["restart_at"] is not None and wanted["restarts"]:
            left = max(0.0, wanted["restart_at"] - self._now())
            return f"It ended by itself ({wanted['why']}); start {wanted['restarts'] + 1} in {left:.0f} s"
        if run is None or not run.history:
            return "Waiting to be started"
        reason, until = self.waiting(run) or (run.history[-1].reason, run.history[-1].until)
        return reason + (f" ({until})" if until else "")

    def _run(self, workspace_id: str, run_id: str | None) -> RunRecord | None:
        try:
            return self._shelf.runs.get(workspace_id, run_id) if run_id is not None else None
        except NotFound:
            return None

    def logs(self, actor: Actor, workspace_id: str, name: str, version: str | None, lines: int, init: bool) -> str:
        """What the newest revision printed, through all its restarts; with `init` how its environment was built."""
        actor.may_read(workspace_id)
        asset = find_service(self._shelf, workspace_id, name)
        wanted = version_of(asset, asset.body["default"] if version is None else version)["wanted"]
        said: list[str] = []
        for run_id in wanted["runs"]:
            try:
                file = self._shelf.files.get(workspace_id, run_id, BUILD_LOG if init else STD_LOG)
            except NotFound:
                continue
            skip = max(0, file.size - lines * _LINE)
            said.append(b"".join(self._shelf.files.read(workspace_id, run_id, file, skip)).decode("utf-8", "replace"))
        text = "Lapis: it ended, and was started again\n".join(said)
        return "\n".join(text.splitlines()[-lines:])


def find_service(shelf: Shelf, workspace_id: str, name: str) -> Asset:
    found = shelf.assets.find(workspace_id, SERVICE, name)
    if found:
        return found[0]
    names = [each.name for each in shelf.assets.find(workspace_id, SERVICE) if each.body["kind"] != PROFILED]
    workspace = shelf.workspaces.find(id=workspace_id)[0]["name"]
    raise NotFound(
        f"WebserviceNotFound: No service named '{name}' in workspace '{workspace}'. Known: "
        f"{', '.join(names) or 'none'}."
    )


def version_of(asset: Asset, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = asset.body["versions"].get(name)
    if found is None:
        known = ", ".join(filter(None, asset.body["versions"])) or "none: it is no AksEndpoint"
        raise WebserviceException(f"Service '{asset.name}' has no version '{name}'. Known: {known}.")
    return found


def uses_tokens(asset: Asset) -> bool:
    return rules.uses_tokens(asset.body["kind"], asset.body["settings"])


def _shown_error(wanted: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if wanted["error"] is None:
        return None
    error = dict(wanted["error"])
    if wanted["state"] == moves.FAILED and old is not None:
        error["message"] += f" Revision {old['revision']} goes on answering."
    return error


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _CONNECT).close()
    except OSError:
        return False
    return True
