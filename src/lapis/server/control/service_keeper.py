"""Keeps services alive: starts what is to be started, hands over, starts again what ended, ends what is deleted."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from lapis.domain import service_moves as moves
from lapis.domain.job import Job, ServedModel, ServicePart
from lapis.domain.log_names import STD_LOG
from lapis.domain.run import RunRecord
from lapis.domain.service import BROKEN, EXPERIMENT, READY, SERVICE_RUN, ServiceRecord, Slot, Version
from lapis.errors import AzureMLException, NotFound
from lapis.server.control.computes import Computes
from lapis.server.control.runs import NewRun, Runs
from lapis.server.control.service_content import Contents
from lapis.server.control.service_fronts import ServiceFronts
from lapis.server.control.services import Services
from lapis.server.control.stores import Stores

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
        steady: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._runs = runs
        self._services = services
        self._fronts = fronts
        self._contents = contents
        self._computes = computes
        self._sockets = os.path.join(home, "services")
        self._steady = steady

    def look_after(self) -> bool:
        """Whether there are any."""
        services = self._stores.services.all()
        for service in services:
            try:
                self._look_after(service)
            except Exception:
                _log.exception("Service '%s' could not be looked after", service.name)
        return bool(services)

    def _look_after(self, service: ServiceRecord) -> None:
        if service.deleting:
            self._end(service)
            return
        for name, version in service.versions.items():
            for slot in version.slots:
                service = self._mind(service, name, version, slot)
        self._let_go(service)

    # -- one revision

    def _mind(self, service: ServiceRecord, name: str, version: Version, slot: Slot) -> ServiceRecord:
        if slot.state == BROKEN:
            return service
        if slot.run is None:
            due = slot.restart_at is None or self._steady() >= slot.restart_at
            return self._start(service, name, version, slot) if due else service
        self._stores.files.give_up_beginning(service.workspace_id, slot.run, STD_LOG)
        run = self._run(service, slot.run)
        if run is None or run.ended:
            return self._ended(service, name, slot, run)
        return self._heard(service, name, slot) if slot is version.wanted else service

    def _start(self, service: ServiceRecord, name: str, version: Version, slot: Slot) -> ServiceRecord:
        try:
            new = self._new_run(service, name, version, slot)
            with self._stores.database.write():  # in one: a run that no slot names would serve for ever
                run = self._runs.make(service.workspace_id, [new])[0]
                service = self._set(service, name, slot, moves.started(slot, run.id))
        except AzureMLException as error:
            fault = {"code": error.code, "message": error.message}
            return self._set(service, name, slot, moves.failed(slot, fault))
        self._forget_old_runs(service, run.id)
        return service

    def _forget_old_runs(self, service: ServiceRecord, fresh: str) -> None:
        """A service may be started many times: of those runs, only the last ones are worth keeping."""
        kept = {
            fresh,
            *(run for slot in service.slots for run in slot.runs),
            *(each.run for each in service.leaving),
        }
        for run in self._services.runs_of(service):
            if run.ended and run.id not in kept:
                self._fronts.reports.pop(run.id, None)
                self._runs.delete(service.workspace_id, run.id)

    def _ended(self, service: ServiceRecord, name: str, slot: Slot, run: RunRecord | None) -> ServiceRecord:
        error, why = _how_it_ended(run, self._fronts.reports.get(slot.run or "", (0.0, {}))[1])
        _log.warning("Service '%s' ended by itself: %s", service.name, why)
        return self._set(service, name, slot, moves.ended(slot, error, why, self._steady()))

    def _heard(self, service: ServiceRecord, name: str, slot: Slot) -> ServiceRecord:
        """The front of the wanted revision is ready: the one before it has handed over."""
        front = self._fronts.front(slot)
        if slot.run is None or slot.state == READY or front is None or front.get("state") != "ready":
            return service
        run, told = slot.run, self._fronts.reports[slot.run][1]
        address = f"{told.get('host') or '127.0.0.1'}:{front.get('port')}"
        now = self._steady()
        return self._stores.services.change(service, lambda stored: moves.became_ready(stored, name, run, address, now))

    def _set(self, service: ServiceRecord, name: str, before: Slot, after: Slot) -> ServiceRecord:
        """Keep `after` unless somebody updated the service meanwhile: then the run that was begun for it goes."""
        lost: list[str] = []

        def apply(stored: ServiceRecord) -> ServiceRecord:
            changed = moves.slot_changed(stored, name, before, after)
            if changed is None and after.run is not None and after.run != before.run:
                lost.append(after.run)
            return changed or stored

        changed = self._stores.services.change(service, apply)
        for run_id in lost:
            self._runs.cancel(service.workspace_id, run_id, "the service was updated meanwhile")
        return changed

    def _new_run(self, service: ServiceRecord, name: str, version: Version, slot: Slot) -> NewRun:
        content, settings = slot.content, slot.settings.over(service.settings)
        here = service.target is None or self._computes.is_here(service.workspace_id, service.target)
        models = self._contents.files_of(service.workspace_id, content)
        part = ServicePart(
            id=service.id,
            name=service.name,
            version=name,
            revision=slot.revision,
            port=version.port,
            place=version.place,
            sockets=self._sockets if here else None,
            host=self._services.host if here else None,
            models=tuple(ServedModel.from_json(model) for model in models),
            entry_script=content.entry_script,
            folder=content.folder,
            no_code=content.no_code,
            replicas=settings.replicas(service.kind, os.cpu_count() or 1),
            limits=settings.limits(),
            probe=settings.probe(),
            collect=bool(settings.collect_model_data),
            app_insights=bool(settings.enable_app_insights),
        )
        job = Job(
            python=content.python,
            environment=content.environment,
            environment_variables={**settings.thread_variables(), **content.environment_variables},
            watch=(),
            collect_outputs=False,
            notices=content.notices,
            service=part,
        )
        return NewRun(
            experiment=EXPERIMENT,
            run_id=f"{service.name}-{slot.revision}-{uuid.uuid4().hex[:12]}",
            nonce=uuid.uuid4().hex,
            type=SERVICE_RUN,
            properties={"lapis.service": service.id, "lapis.service.name": service.name},
            snapshot_id=content.snapshot_id,
            target="local" if here else service.target,
            job=job,
            accepted=f"Revision {slot.revision} of service '{service.name}'",
            created_by=service.created_by,
        )

    # -- what goes

    def _let_go(self, service: ServiceRecord) -> None:
        """Runs of earlier revisions: those that have ended are forgotten, those that stay too long are stopped."""
        gone = []
        for each in service.leaving:
            run = self._run(service, each.run)
            if run is None or run.ended:
                gone.append(each.run)
            elif each.cancel_at is not None and self._steady() >= each.cancel_at and not run.cancel_requested:
                self._runs.cancel(service.workspace_id, run.id, "a later revision has taken over")
        if gone:
            self._stores.services.change(service, lambda stored: moves.runs_gone(stored, gone))

    def _end(self, service: ServiceRecord) -> None:
        """Stop everything; when that is done, forget the service and its runs."""
        runs = self._services.runs_of(service)
        for run in runs:
            if not run.ended and not run.cancel_requested:
                self._runs.cancel(service.workspace_id, run.id, "the service is deleted")
        if all(run.ended for run in self._services.runs_of(service)):
            for run in runs:
                self._fronts.reports.pop(run.id, None)
                self._runs.delete(service.workspace_id, run.id)
            self._stores.services.remove(service)

    def _run(self, service: ServiceRecord, run_id: str) -> RunRecord | None:
        try:
            return self._stores.runs.get(service.workspace_id, run_id)
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
