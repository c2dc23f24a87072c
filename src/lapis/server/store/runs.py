"""Keeps runs: whole values, replaced only by someone who has seen the newest one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.run import RunRecord, RunState
from lapis.domain.run_filter import RunFilter
from lapis.domain.service import SERVICE_RUN
from lapis.domain.standing import place, standing
from lapis.errors import Conflict, NotFound
from lapis.server.store import ranking, run_marks, usual_definition
from lapis.server.store.database import Database
from lapis.server.store.prepared import Prepared
from lapis.server.store.run_lists import RunLists, cursor_of
from lapis.server.store.tables import (
    experiments,
    journals,
    metric_blocks,
    metric_series,
    run_assets,
    run_files,
    runs,
)

_AT_ONCE = 1000  # runs that are read together


class Queued(NamedTuple):
    workspace_id: str
    id: str
    experiment: str
    created_at: float
    number: int
    parent_id: str | None
    target: str | None


class RunStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._not_ranked = 0

    def add(self, run: RunRecord, experiment: dict[str, Any]) -> RunRecord:
        """Keep a new run and give it its number."""
        return self.add_many([run], experiment)[0]

    def add_many(
        self, many: list[RunRecord], experiment: dict[str, Any], along: Callable[[], None] = lambda: None
    ) -> list[RunRecord]:
        """All of them with what is done `along`, or none. The same create again (same nonces) is silent."""
        try:
            with self._database.write() as connection:
                added = [self._add(connection, run, experiment) for run in many]
                along()
                return added
        except _Known as known:
            return [self._as_known(run, known.run) for run in many]

    def _as_known(self, run: RunRecord, clash: RunRecord) -> RunRecord:
        """The run that an earlier, equal call made; a Conflict if there was none."""
        try:
            kept = self.get(run.workspace_id, run.id)
        except NotFound:
            kept = None
        if kept is None or not run.nonce or kept.nonce != run.nonce:
            raise Conflict(f"A run with id '{clash.id}' exists already. Run.get(workspace, '{clash.id}') gives it.")
        return kept

    def _add(self, connection: Connection, run: RunRecord, experiment: dict[str, Any]) -> RunRecord:
        home = _COUNT_UP.first(connection, {"w": run.workspace_id, "n": run.experiment})
        if home is None:  # the first run of this experiment makes it
            home = connection.execute(
                insert(experiments)
                .values(
                    id=experiment["id"],
                    workspace_id=run.workspace_id,
                    name=run.experiment,
                    runs=1,
                    body=json.dumps(experiment),
                )
                .returning(experiments.c.pk, experiments.c.runs)
            ).one()
        run = run._replace(number=home.runs)
        added = _INSERT.first(connection, dict(_to_row(run), experiment_pk=home.pk))
        if added is None:
            raise _Known(run)
        run_marks.write(connection, added.pk, set(), run_marks.of_run(run, home.pk))
        return run

    def get(self, workspace_id: str, run_id: str) -> RunRecord:
        with self._database.read() as connection:
            return _to_record(_found(_ONE.first(connection, {"w": workspace_id, "r": run_id}), run_id))

    def find(self, where: RunFilter, limit: int, cursor: str | None = None) -> tuple[list[RunRecord], str | None]:
        """A page, and the cursor of the next page or None. Never reads metric points."""
        with self._database.read() as connection:
            home = _home(connection, where)
            if where.experiment is not None and home is None:
                return [], None
            keys = RunLists(connection, where, home).page(limit + 1, cursor)
            page = keys[:limit]
            rows = [_BY_NUMBER.first(connection, {"p": key[-1]}) for key in page]
        found, things = {row.pk: _to_record(row) for row in rows if row is not None}, run_marks.asked(where)
        records = [found[key[-1]] for key in page if key[-1] in found]
        more = cursor_of(page[-1]) if len(keys) > limit else None
        return [run for run in records if run_marks.has(run, things)], more

    def find_all(self, where: RunFilter) -> list[RunRecord]:
        """The oldest first."""
        found, cursor = self.find(replace(where, oldest_first=True), _AT_ONCE)
        while cursor is not None:
            page, cursor = self.find(replace(where, oldest_first=True), _AT_ONCE, cursor)
            found += page
        return found

    def children(self, workspace_id: str, run_id: str) -> list[RunRecord]:
        """Those directly below, oldest first."""
        with self._database.read() as connection:
            return [_to_record(row) for row in _CHILDREN.all(connection, {"w": workspace_id, "r": run_id})]

    def living_children(self, workspace_id: str, run_id: str) -> list[RunRecord]:
        """Those directly below that have not ended, oldest first."""
        with self._database.read() as connection:
            return [_to_record(row) for row in _LIVING_CHILDREN.all(connection, {"w": workspace_id, "r": run_id})]

    def left_behind(self) -> list[tuple[RunRecord, RunRecord]]:
        """Runs that have not ended though their parent has, each after that parent."""
        parent = runs.alias()
        pairs = (
            select(parent.c.id, runs.c.workspace_id, runs.c.id.label("child"))
            .join(parent, (parent.c.workspace_id == runs.c.workspace_id) & (parent.c.id == runs.c.parent_id))
            .where(runs.c.ended == literal_column("0"), parent.c.ended == literal_column("1"))
            .order_by(runs.c.pk)
        )
        with self._database.read() as connection:
            found = connection.execute(pairs).all()
        return [(self.get(row.workspace_id, row.id), self.get(row.workspace_id, row.child)) for row in found]

    def count_active(self, workspace_id: str | None = None) -> int:
        """How many runs have not ended, without those that services live in."""
        query = (
            select(func.count()).select_from(runs).where(runs.c.ended == literal_column("0"))
        )  # not bound: the partial index wants it so
        query = query.where(or_(runs.c.type.is_(None), runs.c.type != SERVICE_RUN))
        if workspace_id is not None:
            query = query.where(runs.c.workspace_id == workspace_id)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def launched(self) -> list[RunRecord]:
        """Runs that an engine has and that have not ended."""
        return self._minded("launched")

    def building(self) -> list[RunRecord]:
        """Runs whose environment is not there yet."""
        return self._minded("building")

    def owned(self) -> list[RunRecord]:
        """Interactive runs that have not ended."""
        return self._minded("owned")

    def sweeps(self) -> list[RunRecord]:
        """Hyperparameter searches that have not ended."""
        return self._minded("sweep")

    def pipelines(self) -> list[RunRecord]:
        """Pipelines that have not ended."""
        return self._minded("pipeline")

    def queued(self) -> list[Queued]:
        """Runs that wait for an engine, oldest first: only what choosing among them needs."""
        with self._database.read() as connection:
            return [Queued(*row) for row in connection.execute(_QUEUED)]

    def _minded(self, how: str) -> list[RunRecord]:
        with self._database.read() as connection:
            return [_to_record(row) for row in connection.execute(_MINDED, {"how": how})]

    def change(self, workspace_id: str, run_id: str, how: Callable[[RunRecord], RunRecord]) -> RunRecord:
        """Read, change and keep in one transaction, so that no other change comes between."""
        with self._database.write() as connection:
            row = _found(_ONE.first(connection, {"w": workspace_id, "r": run_id}), run_id)
            before = _to_record(row)
            after = how(before)
            if after == before:
                return before
            after = after._replace(revision=before.revision + 1)
            _put(connection, row, before, after)
            if after.ended and not before.ended:
                self._rank_now_and_then(connection)
            return after

    def _rank_now_and_then(self, connection: Connection) -> None:
        self._not_ranked += 1  # a server before us may have left some: they are among those that are found then
        if self._not_ranked >= ranking.AT_ONCE:
            ranking.rank_ended(connection)
            self._not_ranked = 0

    def heard(self, workspace_id: str, run_id: str, at: float) -> None:
        """A sign of life: no change of the run, so no new revision."""
        with self._database.write() as connection:
            connection.execute(
                update(runs).where(runs.c.workspace_id == workspace_id, runs.c.id == run_id).values(last_heard=at)
            )

    def remove(self, workspace_id: str, run_ids: Iterable[str]) -> None:
        with self._database.write() as connection:
            remove_runs(connection, and_(runs.c.workspace_id == workspace_id, runs.c.id.in_(list(run_ids))))


def remove_runs(connection: Connection, which: ColumnElement[bool]) -> None:
    """Remove runs with all that hangs on them. Their blobs stay: other runs may share them."""
    mine = select(runs.c.pk).where(which)
    for row in connection.execute(select(runs).where(which)).yield_per(_AT_ONCE):
        run_marks.write(connection, row.pk, run_marks.of_run(_to_record(row), row.experiment_pk), set())
    series = select(metric_series.c.pk).where(metric_series.c.run_pk.in_(mine))
    connection.execute(delete(metric_blocks).where(metric_blocks.c.series_pk.in_(series)))
    for table in (metric_series, journals, run_files, run_assets):
        connection.execute(delete(table).where(table.c.run_pk.in_(mine)))
    connection.execute(delete(runs).where(which))


class _Known(Exception):
    """A run of that id is there: whether by the same call is to be seen once the transaction is undone."""

    def __init__(self, run: RunRecord) -> None:
        self.run = run


def _found(row: Row[Any] | None, run_id: str) -> Row[Any]:
    if row is None:
        raise NotFound(f"No run with id '{run_id}' in this workspace. `lapis run list` shows the newest ones.")
    return row


def _home(connection: Connection, where: RunFilter) -> int | None:
    if where.experiment is None:
        return None
    row = _EXPERIMENT.first(connection, {"w": where.workspace_id, "n": where.experiment})
    return None if row is None else int(row.pk)


_QUEUED = (
    select(runs.c.workspace_id, runs.c.id, experiments.c.name, runs.c.created_at, runs.c.pk, runs.c.parent_id,
           runs.c.target)
    .join(experiments, experiments.c.pk == runs.c.experiment_pk)
    .where(runs.c.minded == "queued")
    .order_by(runs.c.pk)
)  # fmt: skip
_MINDED = select(runs).where(runs.c.minded == bindparam("how")).order_by(runs.c.pk)

_COLUMNS = ("workspace_id", "id", "parent_id", "root_id", "type", "target", "created_at",
            "archived_at", "last_heard", "revision")  # fmt: skip
_WRITTEN = (*_COLUMNS, "state", "ended", "minded", "standing", "body")
_STANDS = ("archived_at", "state", "ended", "minded", "standing")  # of those that change, the ones in some index
_ONE = Prepared(select(runs).where(runs.c.workspace_id == bindparam("w"), runs.c.id == bindparam("r")))
_BY_NUMBER = Prepared(select(runs).where(runs.c.pk == bindparam("p")))
_CHILDREN = Prepared(
    select(runs).where(runs.c.workspace_id == bindparam("w"), runs.c.parent_id == bindparam("r")).order_by(runs.c.pk)
)
_LIVING_CHILDREN = Prepared(
    select(runs)
    .where(runs.c.workspace_id == bindparam("w"), runs.c.parent_id == bindparam("r"))
    .where(runs.c.ended == literal_column("0"))
    .order_by(runs.c.pk)
)
_COUNT_UP = Prepared(
    update(experiments)
    .where(experiments.c.workspace_id == bindparam("w"), experiments.c.name == bindparam("n"))
    .values(runs=experiments.c.runs + literal_column("1"))
    .returning(experiments.c.pk, experiments.c.runs)
)
_INSERT = Prepared(upsert(runs).on_conflict_do_nothing().returning(runs.c.pk), (*_WRITTEN, "experiment_pk"))
_NOTE = Prepared(update(runs).where(runs.c.pk == bindparam("which")), ("last_heard", "revision", "body"))
_MOVE = Prepared(update(runs).where(runs.c.pk == bindparam("which")), ("last_heard", "revision", "body", *_STANDS))
_EXPERIMENT = Prepared(
    select(experiments.c.pk).where(experiments.c.workspace_id == bindparam("w"), experiments.c.name == bindparam("n"))
)


def _put(connection: Connection, row: Any, before: RunRecord, after: RunRecord) -> None:
    """Keep what became of a run. An index is written for every column named, though its value stay the same."""
    written = _to_row(after)
    moved = any(written[name] != getattr(row, name) for name in _STANDS)
    names = ("last_heard", "revision", "body", *(_STANDS if moved else ()))
    (_MOVE if moved else _NOTE).run(connection, [dict({name: written[name] for name in names}, which=row.pk)])
    if before.ended and written["standing"] != row.standing:
        ranking.move(connection, row.pk, written["standing"])
    if (before.tags, before.properties, place(before)) != (after.tags, after.properties, place(after)):
        old, new = (run_marks.of_run(run, row.experiment_pk) for run in (before, after))
        run_marks.write(connection, row.pk, old, new)


def _to_row(run: RunRecord) -> dict[str, Any]:
    body = run.to_json()
    row: dict[str, Any] = {name: body.pop(name) for name in _COLUMNS}
    row["state"] = body.pop("state")
    row["ended"] = int(run.ended)
    row["minded"] = _why_minded(run)
    row["standing"] = standing(run)
    short = usual_definition.shortened(run.definition) if run.definition else None
    if short is not None:
        body["definition"], body[_SHORT] = None, short
    for step in body["history"]:
        if not step["until"]:
            del step["until"]
    told = {name: value for name, value in body.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
    row["body"] = json.dumps(told, separators=(",", ":"))
    return row


def _why_minded(run: RunRecord) -> str | None:
    if run.ended:
        return None
    if run.handle is not None:
        return "launched"
    if run.job is not None:
        return "building" if run.state is RunState.PREPARING else "queued"
    if run.sweep is not None:
        return "sweep"
    if run.pipeline is not None:
        return "pipeline"
    return "owned" if run.owner is not None else None


def _to_record(row: Any) -> RunRecord:
    body = json.loads(row.body)
    if _SHORT in body:
        body["definition"] = usual_definition.whole(body.pop(_SHORT))
    body.update(zip(_COLUMNS, _columns(row), strict=True), state=row.state)
    return RunRecord.from_json(body)


_columns = attrgetter(*_COLUMNS)
_DEFAULTS = RunRecord._field_defaults
_SHORT = "short_definition"
