"""Brings what is in line with what was asked for: launches queued runs, finds lost agents, ends what was cancelled."""

from __future__ import annotations

import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from lapis.domain import run as rules
from lapis.domain.compute import Wants
from lapis.domain.run import RunRecord, RunState
from lapis.domain.services import EXPERIMENT as SERVICES
from lapis.engines.base import Engine, Handle, JobState, Place
from lapis.errors import AzureMLException, NotFound
from lapis.machine import processes
from lapis.server.control.access import Access
from lapis.server.control.computes import Computes
from lapis.server.control.fleet import LOCAL, Fleet
from lapis.server.control.jobs import Address, job_spec, recovery_spec
from lapis.server.control.runs import BUILD_LOG, Runs, queue
from lapis.server.control.shelf import Shelf
from lapis.server.control.workshop import Workshop
from lapis.server.store.assets import Asset
from lapis.server.store.runs import Queued

MOST_LAUNCHES = 10  # an agent that dies at once, again and again, will not do better the next time
_OWNED_EVERY = 1.0  # seconds between looks at whose processes are gone
RETRIES = "lapis.retries"
HARD_AFTER = 15.0  # seconds that a cancelled run has to go by itself
_log = logging.getLogger("lapis.reconciler")


class Reconciler:
    """One thread. Every pass begins from the store, so a pass that failed half way is made good by the next."""

    def __init__(
        self,
        shelf: Shelf,
        runs: Runs,
        computes: Computes,
        fleet: Fleet,
        workshop: Workshop,
        access: Access,
        address: Address,
        max_runs: int,
        now: Callable[[], float],
    ) -> None:
        self._shelf = shelf
        self._runs = runs
        self._computes = computes
        self._fleet = fleet
        self._workshop = workshop
        self._access = access
        self._address = address
        self._max_runs = max_runs
        self._now = now
        self._wake = threading.Event()
        self._stopping = False
        self._asked_to_stop: dict[str, float] = {}
        self._tracked: dict[str, tuple[Engine, Handle]] = {}  # jobs that something lies around of, by run
        self._places: dict[str, int] = {}
        self._waits: dict[str, tuple[str, str]] = {}  # why, and what ends it: of runs that wait for nodes
        self._engine_waits: dict[
            str, tuple[str, str]
        ] = {}  # the same, of runs that wait for their cluster to have room
        self._wanted: dict[str, tuple[int, int]] = {}
        self._build_log_told: dict[str, int] = {}  # by run
        self._served: dict[str, int] = {}  # the last launch of each experiment, by number
        self.look_after_services: Callable[[], None] = lambda: None
        self.service_secrets: Callable[[RunRecord], dict[str, Any]] = lambda run: {}  # what is told only at launch
        self._host = socket.gethostname()
        self._owned_seen = 0.0
        self._thread = threading.Thread(target=self._loop, name="reconciler", daemon=True)

    def start(self) -> None:
        for workspace_id, run_id in self._shelf.files.unsealed():  # a server killed between verdict and sealing
            try:
                if self._shelf.runs.get(workspace_id, run_id).ended:
                    self._shelf.files.seal(workspace_id, run_id)
            except NotFound:
                self._shelf.files.forget(workspace_id, run_id)
        engine = self._fleet.engine(LOCAL)
        self._tracked.update((job_id, (engine, handle)) for job_id, handle in engine.left().items())
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=10)
        self._fleet.close()

    def _loop(self) -> None:
        self._fleet.warm()
        while not self._stopping:
            self._wake.wait(timeout=1.0)
            self._wake.clear()
            if not self._stopping:
                self.one_pass()

    def one_pass(self) -> None:
        try:
            launched = self._shelf.runs.launched()
            self._mind_launched(launched)
            if self._now() - self._owned_seen > _OWNED_EVERY:
                self._owned_seen = self._now()
                self._mind_interactive(self._shelf.runs.owned())
            self.look_after_services()
            self._mind_building(self._shelf.runs.building())
            queued = self._shelf.runs.queued()
            self._forget_ended({run.id for run in launched} | {run.id for run in queued})
            self._serve(queued, launched)
        except AzureMLException as error:  # a full disk, say: the next pass tries again
            _log.error("A pass was cut short: %s", error.message)
        except Exception:
            _log.exception("A pass was cut short")

    # -- launched runs

    def _mind_launched(self, launched: list[RunRecord]) -> None:
        by_engine: dict[Engine, list[RunRecord]] = {}
        waits = {}
        for run in launched:
            by_engine.setdefault(self._computes.engine_of(run.workspace_id, run.target), []).append(run)
        for engine, mine in by_engine.items():
            states = engine.poll([run.handle for run in mine if run.handle is not None])
            for run, state in zip(mine, states, strict=True):
                if state is JobState.LOST:
                    self._lost(run, engine)
                elif state is JobState.GONE:
                    self._gone(run, engine)
                elif state is JobState.WAITING and run.cancel_requested:
                    engine.stop(run.handle or {}, hard=True)
                    self._end(run, RunState.CANCELED, "Cancelled while it waited for nodes", None)
                elif state is JobState.WAITING:
                    waits[run.id] = (engine.explain(run.handle or {}), "ends when the cluster has room for it")
                elif run.cancel_requested:
                    self._stop(run, engine)
        self._engine_waits = waits
        for run_id in set(self._asked_to_stop) - {run.id for run in launched}:
            del self._asked_to_stop[run_id]

    def _lost(self, run: RunRecord, engine: Engine) -> None:
        run = self._shelf.runs.get(run.workspace_id, run.id)
        if run.ended:
            return  # it told its verdict between our look and now
        if run.launches >= MOST_LAUNCHES:
            said = engine.explain(run.handle or {})
            reason = f"Its agent ended {run.launches} times without a verdict"
            error = {"code": "AgentLost", "message": f"{reason}. It said: {said or 'nothing'}"}
            engine.stop(run.handle or {}, hard=True)
            self._end(run, RunState.FAILED, reason, error)
            return
        self._launch(run, engine, f"The agent went away; another one takes over (launch {run.launches + 1})")

    def _gone(self, run: RunRecord, engine: Engine) -> None:
        """A node died under it. It fails with the reason, or begins again if it may."""
        run = self._shelf.runs.get(run.workspace_id, run.id)
        if run.ended:
            return
        why = engine.explain(run.handle or {})
        if run.attempt < _retries(run):
            self._begin_again(run, f"{why}. It starts again with its outputs (retry {run.attempt + 1})")
            return
        engine.stop(run.handle or {}, hard=True)
        self._end(run, RunState.FAILED, why, {"code": "NodeLost", "message": why})

    def _stop(self, run: RunRecord, engine: Engine) -> None:
        handle = run.handle or {}
        since = self._asked_to_stop.get(run.id)
        if since is None:
            self._asked_to_stop[run.id] = self._now()
            engine.stop(handle)
        elif self._now() - since > HARD_AFTER:
            engine.stop(handle, hard=True)
            error = dict(run.error) if run.error else None
            state = RunState.FAILED if error else RunState.CANCELED
            reason = f"Did not stop within {HARD_AFTER:.0f} s of being asked, so its processes were killed"
            self._end(run, state, reason, error)

    def _forget_ended(self, going: set[str]) -> None:
        """Remove what is left of jobs whose runs have ended. An agent does so itself, unless it is killed before."""
        if not self._tracked.keys() - going:
            return
        going |= {run.id for run in self._shelf.runs.owned()}
        for job_id in self._tracked.keys() - going:
            engine, handle = self._tracked[job_id]
            if engine.poll([handle]) == [JobState.LOST]:  # while it lives it may still be at it
                engine.forget(job_id)
                del self._tracked[job_id]

    # -- interactive runs

    def _mind_interactive(self, runs: list[RunRecord]) -> None:
        alive: dict[tuple[int, str], bool] = {}
        for run in runs:
            owner = dict(run.owner or {})
            if owner.get("host") != self._host or not owner.get("journal"):
                continue  # on another machine: its heartbeats tell
            key = (int(owner["pid"]), str(owner["started"]))
            if key not in alive:
                alive[key] = processes.alive(*key)
            if not alive[key]:
                engine = self._fleet.engine(LOCAL)
                handle = engine.launch(recovery_spec(run, self._access, self._address, self._now()))
                self._tracked[run.id] = engine, handle
                self._change(run, lambda found, handle=handle: self._launched(  # type: ignore[misc]
                    found, handle, "Its process is gone: bringing in what it left"
                ))  # fmt: skip

    # -- runs whose environment is not there yet

    def _mind_building(self, runs: list[RunRecord]) -> None:
        """One build for each lock, however many runs wait for it; each of them is told how it goes."""
        self._workshop.keep_only(run.job["environment"]["lock"] for run in runs if run.job is not None)
        for run in runs:
            assert run.job is not None
            lock = run.job["environment"]["lock"]
            if self._workshop.ready(lock):
                self._tell_build(run, lock)
                self._change(run, lambda found: queue(found, self._now()) if not found.ended else found)
                self._build_log_told.pop(run.id, None)
                continue
            failure = self._workshop.failure(lock)
            if failure is not None and run.id in self._build_log_told:  # not one of an earlier time
                self._tell_build(run, lock)
                error = {"code": "EnvironmentBuildFailed", "message": failure}
                self._end(run, RunState.FAILED, f"Its environment could not be built: {failure}", error)
                del self._build_log_told[run.id]
                continue
            self._workshop.start(lock)
            self._tell_build(run, lock)

    def _tell_build(self, run: RunRecord, lock: str) -> None:
        """What the build said since the last time, into the run's own log."""
        told = self._build_log_told.setdefault(run.id, 0)
        fresh = self._workshop.log(lock, told)
        if fresh:
            self._runs.grow_log(run, BUILD_LOG, fresh)
            self._build_log_told[run.id] = told + len(fresh)

    # -- queued runs

    def _serve(self, queued: list[Queued], launched: list[RunRecord]) -> None:
        """Each target has a queue of its own.

        A server killed right after a launch leaves a run without a handle, which may run already: launching it again
        finds its agents.
        """
        self._waits = {}
        clusters = {(each.workspace_id, each.name): each for each in self._computes.clusters()}
        for key, cluster in clusters.items():
            here = [run for run in queued if (run.workspace_id, run.target) == key]
            self._serve_cluster(cluster, here, [run for run in launched if (run.workspace_id, run.target) == key])
        self._launch_queued(
            [run for run in queued if (run.workspace_id, run.target) not in clusters],
            [run for run in launched if (run.workspace_id, run.target) not in clusters],
        )

    def _serve_cluster(self, cluster: Asset, queued: list[Queued], launched: list[RunRecord]) -> None:
        """Give nodes to runs, in their order; bring up what is lacking and let go what has been idle for long."""
        running = {run.id: run for run in launched}
        for run_id in self._computes.settle(cluster, running):
            self._preempted(running.pop(run_id))
        cluster = self._computes.fresh(cluster)
        order = fair_order(queued, launched, self._served)
        order.sort(key=lambda run: -self._wants(run)[1])  # stable: by priority, then as they come
        given = self._computes.allot(cluster, [Wants(run.id, self._wants(run)[0]) for run in order])
        by_id = {run.id: run for run in order}
        for run_id, nodes in given:
            waiting = by_id.pop(run_id)
            self._launch_if_wanted(waiting, self._computes.engine(cluster), [node.place for node in nodes])
        for place, waiting in enumerate(by_id.values(), start=1):
            self._waits[waiting.id] = self._computes.why_waiting(cluster, place, self._wants(waiting)[0])

    def _wants(self, run: Queued) -> tuple[int, int]:
        """How many nodes, and with which priority: of a queued run neither changes."""
        if run.id not in self._wanted:
            job = self._shelf.runs.get(run.workspace_id, run.id).job or {}
            self._wanted[run.id] = (int(job.get("node_count") or 1), int(job.get("priority") or 0))
        return self._wanted[run.id]

    def _preempted(self, run: RunRecord) -> None:
        """Its node was taken away."""
        self._begin_again(run, "A node it ran on was preempted; it starts again with its outputs")

    def _begin_again(self, run: RunRecord, why: str) -> None:
        """Back to the queue, with what it had stored."""
        engine = self._computes.engine_of(run.workspace_id, run.target)
        engine.stop(run.handle or {}, hard=True)
        engine.forget(run.id)

        def apply(found: RunRecord) -> RunRecord:
            if found.ended:
                return found
            found = found._replace(handle=None, attempt=found.attempt + 1, nodes=())
            until = "ends when there are nodes for it"
            if found.state is RunState.QUEUED:
                return rules.note(found, why, at=self._now(), until=until)
            return rules.advance(found, RunState.QUEUED, reason=why, at=self._now(), until=until)

        self._change(run, apply)

    def _launch_queued(self, queued: list[Queued], launched: list[RunRecord]) -> None:
        for waiting in [run for run in queued if run.experiment == SERVICES]:  # they take no slot: they never end
            queued.remove(waiting)
            self._launch_if_wanted(waiting, self._fleet.engine(LOCAL))
        busy: list[Queued | RunRecord] = [run for run in launched if run.job is not None and run.experiment != SERVICES]
        for waiting in fair_order(queued, busy, self._served):
            # a parent that waits for its children would keep them from starting: it does not count
            parents = {run.parent_id for run in (*queued, *busy)}
            if sum(1 for run in busy if run.id not in parents) >= self._max_runs:
                break
            queued.remove(waiting)
            if self._launch_if_wanted(waiting, self._fleet.engine(LOCAL)):
                busy.append(waiting)
        self._places = {run.id: place for place, run in enumerate(fair_order(queued, busy, self._served), start=1)}

    def _launch_if_wanted(self, waiting: Queued, engine: Engine, nodes: Sequence[Place] | None = None) -> bool:
        run = self._shelf.runs.get(waiting.workspace_id, waiting.id)
        if run.ended or run.handle is not None:  # cancelled meanwhile
            return False
        self._launch(run, engine, "", nodes)
        self._served[run.experiment] = max(self._served.values(), default=0) + 1
        return True

    def waiting(self, run: RunRecord) -> tuple[str, str] | None:
        """Why a queued run waits, and what ends it: an observation, so it is told and never stored."""
        if run.id in self._engine_waits and run.state is RunState.QUEUED:
            return self._engine_waits[run.id]
        if run.id in self._waits and run.state is RunState.QUEUED:
            return self._waits[run.id]
        place = self._places.get(run.id)
        if place is None or run.state is not RunState.QUEUED:
            return None
        ahead = f"{place - 1} ahead of it" if place > 1 else "the next one"
        return (
            f"In the queue of '{run.target}': {ahead}, and all {self._max_runs} slots are taken (LAPIS_MAX_RUNS)",
            "ends when a run that runs now ends",
        )

    def _launch(self, run: RunRecord, engine: Engine, reason: str, nodes: Sequence[Place] | None = None) -> None:
        workspace = self._shelf.workspaces.find(id=run.workspace_id)[0]
        if run.job is None:
            spec = recovery_spec(run, self._access, self._address, self._now())
        else:
            experiment = self._shelf.workspaces.experiments(run.workspace_id, run.experiment)[0]
            tree = self._shelf.snapshots.get(run.snapshot_id or "")
            wanted = [*(entry.hash for entry in tree), *_model_files(run)]
            packs = self._shelf.blobs.packs_of(wanted)
            code = {"manifest": tree.to_json(), "packs": packs}
            spec = job_spec(run, workspace, experiment, self._access, self._address, code, self._now())
            spec = replace(spec, body={**spec.body, "environments": self._workshop.root})
            if run.job.get("environment"):
                lock = self._workshop.lock(run.job["environment"]["lock"]).to_json()
                spec = replace(spec, body={**spec.body, "lock": lock})
            if run.job.get("service"):
                spec = replace(spec, body={**spec.body, **self.service_secrets(run)})
        if nodes is None:  # launched again: on the nodes that it has
            nodes = self._computes.places_of(run)
        spec = replace(spec, nodes=tuple(nodes))
        try:
            handle = engine.launch(spec)
        except OSError as failure:
            why = f"Its agent could not be started: {failure}"
            self._end(run, RunState.FAILED, why, {"code": "LaunchFailed", "message": why})
            return
        self._tracked[run.id] = engine, handle
        self._change(run, lambda found: self._launched(found, handle, reason))

    def _launched(self, run: RunRecord, handle: object, reason: str) -> RunRecord:
        run = run._replace(handle=handle, launches=run.launches + 1, last_heard=self._now())  # type: ignore[arg-type]
        return rules.note(run, reason, at=self._now()) if reason else run

    def _end(self, run: RunRecord, state: RunState, reason: str, error: Mapping[str, object] | None) -> None:
        def apply(found: RunRecord) -> RunRecord:
            return rules.end(found, state, reason=reason, at=self._now(), error=error)

        self._runs.ended(self._change(run, apply))

    def _change(self, run: RunRecord, how: Callable[[RunRecord], RunRecord]) -> RunRecord:
        return self._shelf.runs.change(run.workspace_id, run.id, how)


def _model_files(run: RunRecord) -> list[str]:
    """The hashes of what a service's models are made of."""
    models = ((run.job or {}).get("service") or {}).get("models") or []
    return [file["hash"] for model in models for file in model["files"]]


def _retries(run: RunRecord) -> int:
    """How often the run may begin again when a node dies: what its property says, 0 if it does not."""
    said = str(run.properties.get(RETRIES, "0"))
    return int(said) if said.isdigit() else 0


def fair_order(
    queued: Iterable[Queued], running: Iterable[Queued | RunRecord], served: Mapping[str, int] = MappingProxyType({})
) -> list[Queued]:
    """Oldest first within an experiment; between experiments, the one with the fewest runs ahead goes first, and of
    those the one that was served longest ago."""
    ahead = Counter(run.experiment for run in running)
    ranked = []
    for run in sorted(queued, key=lambda each: each.number):
        ranked.append((ahead[run.experiment], served.get(run.experiment, 0), run.number, run))
        ahead[run.experiment] += 1
    return [run for *_, run in sorted(ranked, key=lambda row: row[:3])]
