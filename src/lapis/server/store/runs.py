"""Keeps runs: whole values, replaced only by someone who has seen the newest one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    exists,
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
from lapis.errors import Conflict, NotFound
from lapis.server.store.database import Database
from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import (
    experiments,
    journals,
    metric_blocks,
    metric_series,
    run_assets,
    run_files,
    run_labels,
    runs,
)

_FEW = 500  # runs: as many are looked up one by one


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
        _write_labels(connection, added.pk, run)
        return run

    def get(self, workspace_id: str, run_id: str) -> RunRecord:
        with self._database.read() as connection:
            return _to_record(_found(_ONE.first(connection, {"w": workspace_id, "r": run_id}), run_id))

    def find(self, where: RunFilter, limit: int, cursor: int | None = None) -> tuple[list[RunRecord], int | None]:
        """A page, and the cursor of the next page or None. Never reads metric points."""
        query = self._among_few(where, _select(where))
        if where.best_by is None:
            query = query.order_by(runs.c.pk if where.oldest_first else runs.c.pk.desc())
            if cursor is not None:
                query = query.where(runs.c.pk > cursor if where.oldest_first else runs.c.pk < cursor)
        with self._database.read() as connection:
            rows = connection.execute(query.limit(limit + 1)).all()
        page = rows[:limit]
        more = page[-1].pk if len(rows) > limit and where.best_by is None else None
        return [_to_record(row) for row in page], more

    def _among_few(self, where: RunFilter, query: Select[Any]) -> Select[Any]:
        """Of few runs with a rare label those are looked at, and not all runs whether they have it."""
        for kind, labels in (("t", where.tags), ("p", where.properties)):
            for key, value in labels:
                mine = [run_labels.c.kind == kind, run_labels.c.key == key]
                mine += [run_labels.c.value == value] if value is not None else []
                with self._database.read() as connection:
                    few = connection.execute(select(run_labels.c.run_pk).where(*mine).limit(_FEW + 1)).scalars().all()
                if len(few) <= _FEW:
                    return query.where(runs.c.pk.in_(few))
        return query

    def find_all(self, where: RunFilter) -> list[RunRecord]:
        with self._database.read() as connection:
            return [_to_record(row) for row in connection.execute(_select(where).order_by(runs.c.pk))]

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
            _REPLACE.run(connection, [dict(_to_row(after), which=row.pk)])
            if (after.tags, after.properties) != (before.tags, before.properties):
                connection.execute(delete(run_labels).where(run_labels.c.run_pk == row.pk))
                _write_labels(connection, row.pk, after)
            return after

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
    series = select(metric_series.c.pk).where(metric_series.c.run_pk.in_(mine))
    connection.execute(delete(metric_blocks).where(metric_blocks.c.series_pk.in_(series)))
    for table in (metric_series, journals, run_files, run_labels, run_assets):
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


def _select(where: RunFilter) -> Select[Any]:
    query = select(runs)
    if where.workspace_id is not None:
        query = query.where(runs.c.workspace_id == where.workspace_id)
    if where.experiment is not None:
        home = select(experiments.c.pk).where(experiments.c.name == where.experiment)
        if where.workspace_id is not None:
            home = home.where(experiments.c.workspace_id == where.workspace_id)
        column = runs.c.experiment_pk if where.best_by is None else metric_series.c.experiment_pk  # where the order is
        query = query.where(column == home.scalar_subquery())
    if where.parent_id is not None:
        query = query.where(runs.c.parent_id == where.parent_id)
    if where.root_id is not None:
        query = query.where(runs.c.root_id == where.root_id)
    if where.roots_only:
        query = query.where(runs.c.parent_id.is_(None))
    if where.type is not None:
        query = query.where(runs.c.type == where.type)
    elif not where.services:
        query = query.where(or_(runs.c.type.is_(None), runs.c.type != SERVICE_RUN))
    if where.target is not None:
        query = query.where(runs.c.target == where.target)
    if where.states:
        query = query.where(runs.c.state.in_(where.states))
    if where.archived is not None:
        query = query.where(runs.c.archived_at.is_not(None) if where.archived else runs.c.archived_at.is_(None))
    for kind, labels in (("t", where.tags), ("p", where.properties)):
        for key, value in labels:
            label = and_(run_labels.c.run_pk == runs.c.pk, run_labels.c.kind == kind, run_labels.c.key == key)
            query = query.where(exists().where(label if value is None else and_(label, run_labels.c.value == value)))
    if where.best_by is not None:
        name, goal = where.best_by
        best = metric_series.c.greatest if goal == "maximize" else metric_series.c.least
        query = query.join(metric_series, metric_series.c.run_pk == runs.c.pk)
        query = query.where(metric_series.c.name == name, best.is_not(None))
        query = query.order_by(best.desc() if goal == "maximize" else best)
    return query


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
_WRITTEN = (*_COLUMNS, "state", "ended", "minded", "body")
_ONE = Prepared(select(runs).where(runs.c.workspace_id == bindparam("w"), runs.c.id == bindparam("r")))
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
_REPLACE = Prepared(update(runs).where(runs.c.pk == bindparam("which")), _WRITTEN)


def _to_row(run: RunRecord) -> dict[str, Any]:
    body = run.to_json()
    row: dict[str, Any] = {name: body.pop(name) for name in _COLUMNS}
    row["state"] = body.pop("state")
    row["ended"] = int(run.ended)
    row["minded"] = _why_minded(run)
    row["body"] = json.dumps(body, separators=(",", ":"))
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
    return "owned" if run.owner is not None else None


def _to_record(row: Row[Any]) -> RunRecord:
    body = json.loads(row.body)
    body.update({name: getattr(row, name) for name in _COLUMNS}, state=row.state)
    return RunRecord.from_json(body)


def _write_labels(connection: Connection, run_pk: int, run: RunRecord) -> None:
    rows = [
        {"run_pk": run_pk, "kind": kind, "key": key[:255], "value": value}
        for kind, labels in (("t", run.tags), ("p", run.properties))
        for key, value in labels.items()
    ]
    if rows:
        connection.execute(insert(run_labels), rows)
