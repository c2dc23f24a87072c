"""Keeps services alive: starts what is to be started, hands over, starts again what ended, ends what is deleted."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lapis.domain import service_moves as moves
from lapis.domain import services as rules
from lapis.domain.run import RunRecord
from lapis.errors import AzureMLException, NotFound
from lapis.server.control.computes import Computes
from lapis.server.control.runs import NewRun, Runs
from lapis.server.control.service_content import Contents
from lapis.server.control.service_fronts import ServiceFronts
from lapis.server.control.services import Services
from lapis.server.control.stores import Stores
from lapis.server.store.assets import SERVICE, Asset

DRAIN = 90.0  # seconds that a front which has handed over may take for what it had begun to answer
_log = logging.getLogger("lapis.services")


class ServiceKeeper:
    """Called by the reconciler with every pass. Begins from the store each time, as that does."""

    def __init__(
        self,
        stores: Stores,
        runs: Runs,
        services: Services,
        fronts: ServiceFronts,
        contents: Contents,
        computes: Computes,
        home: str,
        now: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._runs = runs
        self._services = services
        self._fronts = fronts
        self._contents = contents
        self._computes = computes
        self._sockets = os.path.join(home, "services")
        self._now = now

    def look_after(self) -> None:
        for asset in self._stores.assets.of_kind(SERVICE):
            try:
                self._look_after(asset)
            except Exception:
                _log.exception("Service '%s' could not be looked after", asset.name)

    def _look_after(self, asset: Asset) -> None:
        if asset.body["deleting"]:
            self._end(asset)
            return
        for name in asset.body["versions"]:
            for place in ("serving", "wanted"):
                asset = self._mind(asset, name, place)
        self._let_go(asset)

    # -- one revision

    def _mind(self, asset: Asset, name: str, place: str) -> Asset:
        slot = asset.body["versions"][name][place]
        if slot is None or slot["state"] == moves.FAILED:
            return asset
        if slot["run"] is None:
            due = slot["restart_at"] is None or self._now() >= slot["restart_at"]
            return self._start(asset, name, place, slot) if due else asset
        run = self._run(asset, slot["run"])
        if run is None or run.ended:
            return self._ended(asset, name, place, slot, run)
        if place == "wanted":
            return self._heard(asset, name, slot)
        return asset

    def _start(self, asset: Asset, name: str, place: str, slot: Mapping[str, Any]) -> Asset:
        try:
            run = self._runs.make(asset.workspace_id, [self._new_run(asset, name, slot)])[0]
        except AzureMLException as error:
            fault = {"code": error.code, "message": error.message}
            return self._set(asset, name, place, slot, moves.failed(slot, fault))
        asset = self._set(asset, name, place, slot, moves.started(slot, run.id))
        self._forget_old_runs(asset, run.id)
        return asset

    def _forget_old_runs(self, asset: Asset, fresh: str) -> None:
        """A service may be started many times: of those runs, only the last ones are worth keeping."""
        slots = [slot for each in asset.body["versions"].values() for slot in (each["wanted"], each["serving"]) if slot]
        kept = {
            fresh,
            *(run for slot in slots for run in slot["runs"]),
            *(each["run"] for each in asset.body["leaving"]),
        }
        for run in self._services.runs_of(asset):
            if run.ended and run.id not in kept:
                self._fronts.reports.pop(run.id, None)
                self._runs.delete(asset.workspace_id, run.id)

    def _ended(self, asset: Asset, name: str, place: str, slot: Mapping[str, Any], run: RunRecord | None) -> Asset:
        error, why = _how_it_ended(run, self._fronts.reports.get(slot["run"] or "", (0.0, {}))[1])
        after = moves.ended(slot, error, why, self._now())
        _log.warning("Service '%s' ended by itself: %s", asset.name, why)
        return self._set(asset, name, place, slot, after)

    def _heard(self, asset: Asset, name: str, slot: Mapping[str, Any]) -> Asset:
        """The front of the wanted revision is ready: the one before it has handed over."""
        front = self._fronts.front(slot)
        if slot["state"] == rules.READY or front is None or front.get("state") != "ready":
            return asset
        told = self._fronts.reports[slot["run"]][1]
        address = f"{told.get('host') or '127.0.0.1'}:{front.get('port')}"
        now = self._now()

        def apply(found: Asset) -> Asset:
            version = found.body["versions"].get(name)
            if version is None or version["wanted"]["run"] != slot["run"]:
                return found
            moved, dropped = moves.became_ready(version, now, address)
            leaving = [
                {**each, "cancel_at": now + DRAIN} if each["until"] == name else each for each in found.body["leaving"]
            ]
            leaving += [{"run": run, "cancel_at": now + DRAIN, "until": None} for run in dropped]
            versions = {**found.body["versions"], name: moved}
            return replace(found, body={**found.body, "versions": versions, "leaving": leaving})

        return self._stores.assets.change(asset.workspace_id, asset.id, apply)

    def _set(self, asset: Asset, name: str, place: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Asset:
        """Keep `after` unless somebody updated the service meanwhile: then the run that was begun for it goes."""
        lost: list[str] = []

        def apply(found: Asset) -> Asset:
            version = found.body["versions"].get(name)
            there = version[place] if version is not None else None
            if there is None or (there["revision"], there["run"]) != (before["revision"], before["run"]):
                lost.extend([after["run"]] if after["run"] and after["run"] != before["run"] else [])
                return found
            versions = {**found.body["versions"], name: {**version, place: dict(after)}}
            return replace(found, body={**found.body, "versions": versions})

        changed = self._stores.assets.change(asset.workspace_id, asset.id, apply)
        for run_id in lost:
            self._runs.cancel(asset.workspace_id, run_id, "the service was updated meanwhile")
        return changed

    def _new_run(self, asset: Asset, name: str, slot: Mapping[str, Any]) -> NewRun:
        body, content = asset.body, slot["content"]
        settings = {**body["settings"], **slot["settings"]}
        version = body["versions"][name]
        here = body["target"] is None or self._computes.is_here(asset.workspace_id, body["target"])
        section = {
            "id": asset.id,
            "name": asset.name,
            "version": name,
            "revision": slot["revision"],
            "port": version["port"],
            "place": version["place"],
            "sockets": self._sockets if here else None,
            "host": self._services.host if here else None,
            "models": self._contents.files_of(asset.workspace_id, content),
            "entry_script": content["entry_script"],
            "folder": content["folder"],
            "no_code": content["no_code"],
            "replicas": rules.replicas(body["kind"], settings, os.cpu_count() or 1),
            "limits": rules.limits(settings),
            "probe": rules.probe(settings),
            "collect": bool(settings.get("collect_model_data")),
            "app_insights": bool(settings.get("enable_app_insights")),
        }
        job = {
            "script": None,
            "command": None,
            "arguments": [],
            "python": content["python"],
            "environment": content["environment"],
            "environment_variables": {**rules.thread_variables(settings), **content["environment_variables"]},
            "node_count": 1,
            "watch": [],
            "collect_outputs": False,
            "notices": content["notices"],
            "service": section,
        }
        return NewRun(
            experiment=rules.EXPERIMENT,
            run_id=f"{asset.name}-{slot['revision']}-{uuid.uuid4().hex[:12]}",
            nonce=uuid.uuid4().hex,
            type=rules.SERVICE_RUN,
            properties={"lapis.service": asset.id, "lapis.service.name": asset.name},
            snapshot_id=content["snapshot_id"],
            target="local" if here else body["target"],
            job=job,
            accepted=f"Revision {slot['revision']} of service '{asset.name}'",
            created_by=body["created_by"],
        )

    # -- what goes

    def _let_go(self, asset: Asset) -> None:
        """Runs of earlier revisions: those that have ended are forgotten, those that stay too long are stopped."""
        gone = []
        for each in asset.body["leaving"]:
            run = self._run(asset, each["run"])
            if run is None or run.ended:
                gone.append(each["run"])
            elif each["cancel_at"] is not None and self._now() >= each["cancel_at"] and not run.cancel_requested:
                self._runs.cancel(asset.workspace_id, run.id, "a later revision has taken over")
        if gone:

            def apply(found: Asset) -> Asset:
                left = [each for each in found.body["leaving"] if each["run"] not in gone]
                return replace(found, body={**found.body, "leaving": left})

            self._stores.assets.change(asset.workspace_id, asset.id, apply)

    def _end(self, asset: Asset) -> None:
        """Stop everything; when that is done, forget the service and its runs."""
        runs = self._services.runs_of(asset)
        for run in runs:
            if not run.ended and not run.cancel_requested:
                self._runs.cancel(asset.workspace_id, run.id, "the service is deleted")
        if all(run.ended for run in self._services.runs_of(asset)):
            for run in runs:
                self._fronts.reports.pop(run.id, None)
                self._runs.delete(asset.workspace_id, run.id)
            self._stores.assets.remove(asset.workspace_id, SERVICE, asset.name)

    def _run(self, asset: Asset, run_id: str) -> RunRecord | None:
        try:
            return self._stores.runs.get(asset.workspace_id, run_id)
        except NotFound:
            return None


def _how_it_ended(run: RunRecord | None, told: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """What the front said of its end, else what the agent saw of it; and the same in one line."""
    said = (told.get("front") or {}).get("error")
    if said and (told.get("front") or {}).get("state") == "failed":
        return {"code": "EntryScript", **said}, str(said.get("message")).splitlines()[0]
    if run is None:
        return None, "its run is gone"
    why = run.history[-1].reason if run.history else run.state.value
    return (dict(run.error), why) if run.error else (None, why)
