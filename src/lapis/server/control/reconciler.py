"""Brings what is in line with what was asked for: launches queued runs, finds lost agents, ends what was cancelled."""

from __future__ import annotations

import contextlib
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
from lapis.domain.job import Job
from lapis.domain.launch import Owner, Recovery, Work
from lapis.domain.limits import NODES
from lapis.domain.run import RunRecord, RunState
from lapis.domain.service import EXPERIMENT as SERVICES
from lapis.engines.base import Engine, Handle, JobSpec, JobState, NodeHandle
from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.errors import AzureMLException, NotFound, StorageFull, UserErrorException
from lapis.machine import processes, shortages
from lapis.server.control.access import Access
from lapis.server.control.computes import Computes
from lapis.server.control.events import Events
from lapis.server.control.fleet import LOCAL, Fleet
from lapis.server.control.jobs import Address, launch_of, recovery_of
from lapis.server.control.runs import BUILD_LOG, Runs, queue
from lapis.server.control.service_fronts import ServiceFronts
from lapis.server.control.service_keeper import ServiceKeeper
from lapis.server.control.stores import Stores
from lapis.server.control.waiting import WaitingRuns
from lapis.server.store.assets import Asset
from lapis.server.store.runs import Queued

MOST_LAUNCHES = 10  # an agent that dies at once, again and again, will not do better the next time
LAST_LAUNCHES = 3  # of agents that only bring in what is there, when the run's processes have been ended
_OWNED_EVERY = 1.0  # seconds between looks at whose processes are gone
_UNDER_WAY = 1.0  # seconds between passes while something is that tells nobody of its end: a process, a node
_AT_REST = 60.0  # and while nothing is: whatever begins wakes us
RETRIES = "lapis.retries"
HARD_AFTER = 15.0  # seconds that a cancelled run has to go by itself
DELIVER_WITHIN = 3600.0  # and its agent to bring in what it wrote, once its processes have ended
_LACKING = "The last of what it logged and printed may be lacking"
_log = logging.getLogger("lapis.reconciler")


class Reconciler:
    """One thread. Every pass begins from the store, so a pass that failed half way is made good by the next."""

    def __init__(
        self,
        stores: Stores,
        runs: Runs,
        computes: Computes,
        fleet: Fleet,
        builds: EnvironmentBuilds,
        access: Access,
        address: Address,
        max_runs: int,
        fronts: ServiceFronts,
        keeper: ServiceKeeper,
        waiting: WaitingRuns,
        events: Events,
        now: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._runs = runs
        self._computes = computes
        self._fleet = fleet
        self._builds = builds
        self._access = access
        self._address = address
        self._max_runs = max_runs
        self._fronts = fronts
        self._keeper = keeper
        self._waiting = waiting
        self._now, self._steady = now, steady
        self._wake = threading.Event()
        self._stopping = False
        self._asked_to_stop: dict[str, float] = {}
        self._tracked: dict[str, tuple[Engine, Handle]] = {}  # jobs that something lies around of, by run
        self._wanted: dict[str, tuple[int, int]] = {}
        self._build_log_told: dict[str, int] = {}  # by run
        self._served: dict[str, int] = {}  # the last launch of each experiment, by number
        self._troubled: dict[str, str] = {}  # by run: why it could not be minded, as the log has it
        self._host, self._seen_from = socket.gethostname(), processes.seen_from()
        self._owned_seen = 0.0
        self._any_owned = False
        self._thread = threading.Thread(target=self._loop, name="reconciler", daemon=True)
        events.on_work(self._wake.set)

    def start(self) -> None:
        self._runs.endings.finish()
        for workspace_id, run_id in self._stores.files.unsealed():  # a server killed between verdict and sealing
            try:
                if self._stores.runs.get(workspace_id, run_id).ended:
                    self._stores.files.seal(workspace_id, run_id)
            except NotFound:
                self._stores.files.forget(workspace_id, run_id)
        engine = self._fleet.engine(LOCAL)
        self._tracked.update((job_id, (engine, handle)) for job_id, handle in engine.left().items())
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout=10)
        self._fleet.close()

    def _loop(self) -> None:
        self._fleet.warm()
        under_way = True
        while not self._stopping:
            self._wake.wait(_UNDER_WAY if under_way else _AT_REST)
            self._wake.clear()
            if not self._stopping:
                under_way = self.one_pass()

    def one_pass(self) -> bool:
        """Whether the next one should be soon, though nobody asks for it."""
        try:
            launched = self._stores.runs.launched()
            self._mind_launched(launched)
            if self._steady() - self._owned_seen > _OWNED_EVERY:
                self._owned_seen = self._steady()
                owned = self._stores.runs.owned()
                self._any_owned = bool(owned)
                self._mind_interactive(owned)
            services = self._keeper.look_after()
            building = self._stores.runs.building()
            self._mind_building(building)
            queued = self._stores.runs.queued()
            going = bool(launched or queued or building or services or self._any_owned)
            self._forget_ended({run.id for run in launched} | {run.id for run in queued})
            return self._serve(queued, launched) or going or bool(self._tracked)
        except AzureMLException as error:  # a full disk, say: the next pass tries again
            _log.error("A pass was cut short: %s", error.message)
        except Exception:
            _log.exception("A pass was cut short")
        return True

    # -- launched runs

    def _mind_launched(self, launched: list[RunRecord]) -> None:
        by_engine: dict[Engine, list[RunRecord]] = {}
        waits = {}
        for run in launched:
            by_engine.setdefault(self._computes.engine_of(run.workspace_id, run.target), []).append(run)
        for engine, mine in by_engine.items():
            states = engine.poll([run.handle for run in mine if run.handle is not None])
            for run, polled in zip(mine, states, strict=True):
                state = polled if run.handle else JobState.LOST  # noted, and the server was killed before the launch
                if state is JobState.WAITING and not run.cancel_requested:
                    waits[run.id] = (engine.explain(run.handle or {}), "ends when the cluster has room for it")
                else:
                    self._alone(run, self._mind_one, run, engine, state)
        self._waiting.for_room = waits
        for run_id in set(self._asked_to_stop) - {run.id for run in launched}:
            del self._asked_to_stop[run_id]

    def _mind_one(self, run: RunRecord, engine: Engine, state: JobState) -> None:
        if state is JobState.LOST:
            self._lost(run, engine)
        elif state is JobState.GONE:
            self._gone(run, engine)
        elif state is JobState.WAITING:
            engine.stop(run.handle or {}, hard=True)
            self._runs.endings.end(run, RunState.CANCELED, "Cancelled while it waited for nodes")
        elif run.cancel_requested:
            self._stop(run, engine)

    def _alone(self, run: RunRecord | Queued, work: Callable[..., Any], *of: Any) -> None:
        """One run's trouble is that run's: the others are minded all the same, and the next pass tries it again."""
        try:
            work(*of)
            self._troubled.pop(run.id, None)
            self._waiting.troubled.pop(run.id, None)
        except StorageFull:  # everybody's
            raise
        except Exception as error:
            if self._troubled.get(run.id) != repr(error):
                _log.exception("Run %s could not be minded; it is tried again", run.id)
            self._troubled[run.id] = repr(error)
            said = getattr(error, "strerror", None) or getattr(error, "message", None) or "the server's log tells why"
            self._waiting.troubled[run.id] = (f"It could not be started: {said}", "ends when that is over")

    def _lost(self, run: RunRecord, engine: Engine) -> None:
        run = self._stores.runs.get(run.workspace_id, run.id)
        if run.ended:
            return  # it told its verdict between our look and now
        if run.launches >= MOST_LAUNCHES:
            self._give_up(run, engine)
            return
        again = f"The agent went away; another one takes over (launch {run.launches + 1})"
        self._launch(run, engine, again if run.handle else "")

    def _give_up(self, run: RunRecord, engine: Engine) -> None:
        """End its processes, then have what they left brought in, then end the run."""
        said = engine.explain(run.handle or {})
        reason = f"Its agent ended {MOST_LAUNCHES} times without a verdict"
        engine.stop(run.handle or {}, hard=True)
        if run.launches < MOST_LAUNCHES + LAST_LAUNCHES:
            error = {"code": "AgentLost", "message": f"{reason}. It said: {said or 'nothing'}"}
            verdict = {"state": RunState.FAILED.value, "reason": reason, "error": error}
            self._launch(
                run, engine, f"{reason}: its processes were ended, and what they left is brought in", None, verdict
            )
            return
        error = {"code": "AgentLost", "message": f"{reason}. {_LACKING}. It said: {said or 'nothing'}"}
        self._runs.endings.end(run, RunState.FAILED, reason, error)

    def _gone(self, run: RunRecord, engine: Engine) -> None:
        """A node died under it. It fails with the reason, or begins again if it may."""
        run = self._stores.runs.get(run.workspace_id, run.id)
        if run.ended:
            return
        why = engine.explain(run.handle or {})
        if run.attempt < _retries(run):
            self._begin_again(run, f"{why}. It starts again with its outputs (retry {run.attempt + 1})")
            return
        engine.stop(run.handle or {}, hard=True)
        self._runs.endings.end(run, RunState.FAILED, why, {"code": "NodeLost", "message": why})

    def _stop(self, run: RunRecord, engine: Engine) -> None:
        handle = run.handle or {}
        since = self._asked_to_stop.get(run.id)
        if since is None:
            self._asked_to_stop[run.id] = self._steady()
            engine.stop(handle)
        elif self._steady() - since > (limit := DELIVER_WITHIN if _delivers(run) else HARD_AFTER):
            engine.stop(handle, hard=True)
            reason = f"Did not stop within {limit:.0f} s of being asked, so its processes were killed"
            if engine.poll([handle]) == [JobState.LOST]:  # the next agent brings in what is there, and ends it
                del self._asked_to_stop[run.id]
                self._change(run, lambda stored: rules.note(stored, reason, at=self._now()))
                return
            error = dict(run.error) if run.error else None
            state = RunState.FAILED if error else RunState.CANCELED
            self._runs.endings.end(run, state, f"{reason}. {_LACKING}", error)

    def _forget_ended(self, going: set[str]) -> None:
        """Remove what is left of jobs whose runs have ended. An agent does so itself, unless it is killed before."""
        if not self._tracked.keys() - going:
            return
        going |= {run.id for run in self._stores.runs.owned()}
        for job_id in self._tracked.keys() - going:
            engine, handle = self._tracked[job_id]
            if engine.poll([handle]) == [JobState.LOST]:  # while it lives it may still be at it
                engine.forget(job_id)
                del self._tracked[job_id]

    # -- interactive runs

    def _mind_interactive(self, runs: list[RunRecord]) -> None:
        alive: dict[tuple[int, str], bool] = {}
        for run in runs:
            owner = run.owner
            if owner is None or owner.host != self._host:
                continue  # on another machine: its heartbeats tell
            if self._is_numbered_apart(owner):
                lives = run.made_by is None or not self._has_ended(run.workspace_id, run.made_by)
            else:
                key = (owner.pid, str(owner.started))
                lives = alive[key] if key in alive else alive.setdefault(key, processes.alive(*key))
            if not lives:
                self._alone(run, self._recover, run)

    def _is_numbered_apart(self, owner: Owner) -> bool:
        """Whether its pid says nothing here: a script in namespaces of its own, whose processes end with its run."""
        same_boot = owner.seen_from.split(" ")[0] == self._seen_from.split(" ")[0]
        return same_boot and owner.seen_from != self._seen_from

    def _has_ended(self, workspace_id: str, run_id: str) -> bool:
        try:
            return self._stores.runs.get(workspace_id, run_id).ended
        except NotFound:
            return True

    def _recover(self, run: RunRecord) -> None:
        engine = self._fleet.engine(LOCAL)
        handle = engine.launch(JobSpec(run.id, recovery_of(run, self._access, self._address)))
        self._tracked[run.id] = engine, handle
        reason = "Its process is gone: bringing in what it left"
        self._change(run, lambda stored: self._launched(stored, handle, reason))

    # -- runs whose environment is not there yet

    def _mind_building(self, runs: list[RunRecord]) -> None:
        """One build for each lock, however many runs wait for it; each of them is told how it goes."""
        locks = {run.id: run.job.environment.lock for run in runs if run.job and run.job.environment}
        self._builds.keep_only(locks.values())
        for run in runs:
            if run.id in locks:
                self._alone(run, self._mind_build, run, locks[run.id])
            else:  # what is stored of it is damaged
                self._alone(run, self._refuse, run, " ".join(run.job.wrong if run.job is not None else ()))

    def _mind_build(self, run: RunRecord, lock: str) -> None:
        if self._builds.ready(lock):
            self._tell_build(run, lock)
            self._change(run, lambda stored: queue(stored, self._now()) if not stored.ended else stored)
            self._build_log_told.pop(run.id, None)
            return
        failure = self._builds.failure(lock)
        if failure is not None and run.id in self._build_log_told:  # not one of an earlier time
            self._tell_build(run, lock)
            error = {"code": "EnvironmentBuildFailed", "message": failure}
            self._runs.endings.end(run, RunState.FAILED, f"Its environment could not be built: {failure}", error)
            del self._build_log_told[run.id]
            return
        self._builds.start(lock)
        self._tell_build(run, lock)

    def _tell_build(self, run: RunRecord, lock: str) -> None:
        """What the build said since the last time, into the run's own log."""
        told = self._build_log_told.setdefault(run.id, 0)
        fresh = self._builds.log(lock, told)
        if fresh:
            self._runs.grow_log(run, BUILD_LOG, fresh)
            self._build_log_told[run.id] = told + len(fresh)

    # -- queued runs

    def _serve(self, queued: list[Queued], launched: list[RunRecord]) -> bool:
        """Each target has a queue of its own. Whether one of them has nodes, or should.

        A server killed right after a launch leaves a run without a handle, which may run already: launching it again
        finds its agents.
        """
        self._waiting.for_nodes = {}
        clusters = {(each.workspace_id, each.name): each for each in self._computes.clusters()}
        for key, cluster in clusters.items():
            here = [run for run in queued if (run.workspace_id, run.target) == key]
            self._serve_cluster(cluster, here, [run for run in launched if (run.workspace_id, run.target) == key])
        self._launch_queued(
            [run for run in queued if (run.workspace_id, run.target) not in clusters],
            [run for run in launched if (run.workspace_id, run.target) not in clusters],
        )
        return any(self._computes.has_nodes(each) for each in clusters.values())

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
            engine, places = self._computes.engine(cluster), [node.place for node in nodes]
            self._alone(waiting, self._launch_if_wanted, waiting, engine, places)
        for place, waiting in enumerate(by_id.values(), start=1):
            self._waiting.for_nodes[waiting.id] = self._computes.why_waiting(cluster, place, self._wants(waiting)[0])

    def _wants(self, run: Queued) -> tuple[int, int]:
        """How many nodes, and with which priority: of a queued run neither changes."""
        if run.id not in self._wanted:
            job = self._stores.runs.get(run.workspace_id, run.id).job or Job()
            # one that could never have so many gets one, and is refused as soon as it has it
            self._wanted[run.id] = (job.node_count if job.node_count <= NODES else 1, job.priority)
        return self._wanted[run.id]

    def _preempted(self, run: RunRecord) -> None:
        """Its node was taken away."""
        self._begin_again(run, "A node it ran on was preempted; it starts again with its outputs")

    def _begin_again(self, run: RunRecord, why: str) -> None:
        """Back to the queue, with what it had stored."""
        engine = self._computes.engine_of(run.workspace_id, run.target)
        engine.stop(run.handle or {}, hard=True)
        engine.forget(run.id)

        def apply(stored: RunRecord) -> RunRecord:
            if stored.ended:
                return stored
            if stored.cancel_requested:  # it has stopped, though otherwise than by being asked
                state = RunState.FAILED if stored.error else RunState.CANCELED
                return rules.end(stored, state, reason=why.partition(";")[0], at=self._now(), error=stored.error)
            stored = stored._replace(handle=None, attempt=stored.attempt + 1, nodes=())
            until = "ends when there are nodes for it"
            if stored.state is RunState.QUEUED:
                return rules.note(stored, why, at=self._now(), until=until)
            return rules.advance(stored, RunState.QUEUED, reason=why, at=self._now(), until=until)

        self._runs.endings.change(run.workspace_id, run.id, apply)

    def _launch_queued(self, queued: list[Queued], launched: list[RunRecord]) -> None:
        for waiting in [run for run in queued if run.experiment == SERVICES]:  # they take no slot: they never end
            queued.remove(waiting)
            self._alone(waiting, self._launch_if_wanted, waiting, self._fleet.engine(LOCAL))
        busy: list[Queued | RunRecord] = [run for run in launched if run.job is not None and run.experiment != SERVICES]
        for waiting in fair_order(queued, busy, self._served):
            # a parent that waits for its children would keep them from starting: it does not count
            parents = {run.parent_id for run in (*queued, *busy)}
            if sum(1 for run in busy if run.id not in parents) >= self._max_runs:
                break
            queued.remove(waiting)
            self._alone(waiting, self._launch_if_wanted, waiting, self._fleet.engine(LOCAL))
            if waiting.id in self._tracked:
                busy.append(waiting)
        left = fair_order(queued, busy, self._served)
        self._waiting.places = {run.id: place for place, run in enumerate(left, start=1)}

    def _launch_if_wanted(self, waiting: Queued, engine: Engine, nodes: Sequence[NodeHandle] | None = None) -> None:
        """First the run is noted as the engine's: from then on a cancel goes to its agent, and before then it ends it.

        Were it the other way round, a run could be Canceled and its script start after that.
        """
        noted = False

        def note(stored: RunRecord) -> RunRecord:
            nonlocal noted
            noted = not stored.ended and stored.handle is None
            return stored._replace(handle={}) if noted else stored

        run = self._stores.runs.change(waiting.workspace_id, waiting.id, note)
        if not noted:  # cancelled meanwhile
            return
        self._launch(run, engine, "", nodes)
        self._served[run.experiment] = max(self._served.values(), default=0) + 1

    def _launch(
        self,
        run: RunRecord,
        engine: Engine,
        reason: str,
        nodes: Sequence[NodeHandle] | None = None,
        verdict: Mapping[str, Any] | None = None,
    ) -> None:
        """With a `verdict` the agents only bring in what is there, and tell it."""
        try:
            work = self._work(run)
            if isinstance(work, Work):
                work = replace(work, launch=replace(work.launch, verdict=verdict))
        except UserErrorException as error:  # of what was asked for: the next pass would find the same
            if run.handle is not None:  # its agent went away: its script may be there still
                engine.stop(run.handle, hard=True)
            self._refuse(run, error.message)
            return
        if nodes is None:  # launched again: on the nodes that it has
            nodes = self._computes.places_of(run)
        try:
            handle = engine.launch(JobSpec(run.id, work, tuple(nodes)))
        except OSError as failure:
            if run.handle and run.cancel_requested:  # nobody is there to ask its script
                engine.stop(run.handle, hard=True)
            if run.handle or shortages.passing(failure):
                raise  # what it runs and what it left stays as it is: the next pass tries again
            with contextlib.suppress(OSError):  # agents of other nodes that were started before
                engine.stop(engine.left().get(run.id, {}), hard=True)
            why = f"Its agent could not be started: {failure}"
            self._runs.endings.end(run, RunState.FAILED, why, {"code": "LaunchFailed", "message": why})
            return
        self._tracked[run.id] = engine, handle
        run = self._change(run, lambda stored: self._launched(stored, handle, reason))
        if run.cancel_requested and not run.ended:  # meanwhile
            self._stop(run, engine)

    def _work(self, run: RunRecord) -> Work | Recovery:
        """What its agents are to do. Raises UserErrorException if that cannot be told from what was asked for."""
        job = run.job
        if job is None:
            return recovery_of(run, self._access, self._address)
        workspace = self._stores.workspaces.find(id=run.workspace_id)[0]
        experiment = self._stores.workspaces.experiments(run.workspace_id, run.experiment)[0]
        code = self._stores.snapshots.get(run.snapshot_id or "")
        packs = self._stores.blobs.packs_of([*(entry.hash for entry in code), *_model_files(job)])
        launch = launch_of(
            run, job, workspace, experiment, self._access, self._address, code, packs, self._now()
        )  # fmt: skip
        launch = replace(launch, environments=self._builds.root)
        if job.environment is not None:
            launch = replace(launch, lock=self._builds.lock(job.environment.lock).to_json())
        if job.service is not None:
            launch = replace(launch, front=self._fronts.secrets(run, job.service))
        return Work(self._runs.with_secrets(run, job), launch)

    def _refuse(self, run: RunRecord, why: str) -> None:
        reason = f"It cannot be launched: {why}"
        self._runs.endings.end(run, RunState.FAILED, reason, {"code": "UserError", "message": reason})

    def _launched(self, run: RunRecord, handle: object, reason: str) -> RunRecord:
        if run.ended:  # its agent was quicker
            return run
        run = run._replace(handle=handle, launches=run.launches + 1, last_heard=self._steady())  # type: ignore[arg-type]
        return rules.note(run, reason, at=self._now()) if reason else run

    def _change(self, run: RunRecord, how: Callable[[RunRecord], RunRecord]) -> RunRecord:
        return self._stores.runs.change(run.workspace_id, run.id, how)


def _model_files(job: Job) -> list[str]:
    """The hashes of what a service's models are made of."""
    models = job.service.models if job.service is not None else ()
    return [file.hash for model in models for file in model.files]


def _delivers(run: RunRecord) -> bool:
    """Whether its processes have ended, on all nodes, and its agents bring in what they wrote."""
    nodes_ended = bool(run.nodes) and all(node.get("state") in ("done", "failed") for node in run.nodes)
    return run.state is RunState.FINALIZING or nodes_ended


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
