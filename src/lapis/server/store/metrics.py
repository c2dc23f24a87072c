"""Keeps what runs log: a summary for each series, its points in blocks, and how far each journal has been taken up."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.metrics import REFERENCE, SCALAR, Point, number_of
from lapis.errors import NotFound
from lapis.server.store import metric_blocks as blocks
from lapis.server.store.curves import thinned
from lapis.server.store.database import Database
from lapis.server.store.logged import Logged
from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import journals, metric_series, runs

_RUNS_AT_ONCE = 500  # in one question to the database
_SENT_AT_ONCE = 256 << 10  # bytes that are read before they are handed on
_ALL_OF_A_CHART = 200_000  # points; of a longer series a chart reads the peaks of blocks
_FEW_NAMES = 32


class Values(NamedTuple):
    """Values of one series, packed as `lapis.domain.columns` says."""

    run_id: str
    name: str
    kind: str
    size: int  # how many there are
    packed: bytes


@dataclass
class _Series:
    pk: int
    kind: str
    count: int
    last: float | None
    least: float | None
    greatest: float | None
    fresh: list[Logged] = field(default_factory=list)

    def take(self, logged: Logged) -> None:
        self.fresh.append(logged)
        numbers = blocks.numbers_of(logged.values) if logged.kind == SCALAR else ()
        if numbers:
            self.last, least, greatest = float(numbers[-1]), float(min(numbers)), float(max(numbers))
            self.least = least if self.least is None else min(self.least, least)
            self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    def summary(self) -> dict[str, Any]:
        count = self.count + sum(len(logged.values) for logged in self.fresh)
        return {"points": count, "last": self.last, "least": self.least, "greatest": self.greatest}


class MetricStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, workspace_id: str, run_id: str, stream: str, start: int, end: int, logged: list[Logged]) -> int:
        """Take up what stands in journal bytes `start` to `end`; give the position reached.

        Bytes that do not begin where the last ones ended change nothing: the position tells the sender where to go on.
        """
        with self._database.write() as connection:
            run = _run(connection, workspace_id, run_id)
            position = _position(connection, run.pk, stream)
            if start != position or start == end:
                return position
            by_run: dict[str, list[Logged]] = {}
            for each in logged:
                by_run.setdefault(each.run_id or run_id, []).append(each)
            for owner, group in by_run.items():
                target = run if owner == run_id else _descendant(connection, workspace_id, run, owner)
                if target is not None:  # a child that was deleted meanwhile takes its points along
                    _append(connection, target, group)
            _MOVE.run(connection, [{"run_pk": run.pk, "stream": stream, "position": end}])
            return end

    def position(self, workspace_id: str, run_id: str, stream: str) -> int:
        """How many bytes of this journal have been taken up."""
        with self._database.read() as connection:
            return _position(connection, _run(connection, workspace_id, run_id).pk, stream)

    def points(self, workspace_id: str, run_ids: list[str], name: str | None = None) -> dict[str, list[Point]]:
        """Every point of these runs, in the order logged."""
        found: dict[str, list[Point]] = {run_id: [] for run_id in run_ids}
        with self._database.read() as connection:
            for row in _series_of(connection, workspace_id, run_ids, name):
                for span in blocks.spans(connection, row.pk, 0, row.points):
                    kind = span.kind or row.kind
                    columns = zip(span.times, span.values, span.steps, strict=True)
                    found[row.id] += [Point(kind, at, row.name, value, step) for at, value, step in columns]
        return found

    def values(self, workspace_id: str, run_ids: list[str], name: str | None = None) -> Iterator[list[Values]]:
        """The same without times and steps, and packed, some at a time: however much it is, little of it is in memory.

        No transaction is open while the caller uses them, so a slow one holds up nothing. What is logged meanwhile is
        not among them.
        """
        for first in range(0, len(run_ids), _RUNS_AT_ONCE):
            with self._database.read() as connection:
                series = deque(_series_of(connection, workspace_id, run_ids[first : first + _RUNS_AT_ONCE], name))
            start = 0
            while series:
                found, size = [], 0
                with self._database.read() as connection:
                    while series and size < _SENT_AT_ONCE:
                        row = series[0]
                        for at, count, kind, packed in blocks.values(connection, row.pk, start, row.points):
                            found.append(Values(row.id, row.name, kind or row.kind, count, packed))
                            start, size = at + count, size + len(packed)
                            if size >= _SENT_AT_ONCE:
                                break
                        if start >= row.points or size < _SENT_AT_ONCE:  # all of it; or its run was deleted meanwhile
                            series.popleft()
                            start = 0
                yield found

    def numbers(self, workspace_id: str, run_ids: list[str], name: str, start: int = 0) -> dict[str, list[float]]:
        """One metric of these runs from its point `start` on; what is no number is NaN."""
        found: dict[str, list[float]] = {run_id: [] for run_id in run_ids}
        with self._database.read() as connection:
            for row in _series_of(connection, workspace_id, run_ids, name):
                for span in blocks.spans(connection, row.pk, start, row.points):
                    numbers = map(number_of, span.values)
                    found[row.id] += [math.nan if number is None else number for number in numbers]
        return found

    def summaries(
        self, workspace_id: str, run_ids: list[str], name: str | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {run_id: [] for run_id in run_ids}
        with self._database.read() as connection:
            for row in _series_of(connection, workspace_id, run_ids, name):
                found[row.id].append(
                    {
                        "name": row.name,
                        "kind": row.kind,
                        "count": row.points,
                        "last": row.last,
                        "min": row.least,
                        "max": row.greatest,
                    }
                )
        return found

    def curve(self, workspace_id: str, run_id: str, name: str, most: int) -> list[tuple[float, int | None, float]]:
        """At most `most` (time, step, number) of a series: the ends, and of every stretch its lowest and highest."""
        with self._database.read() as connection:
            series = next(iter(_series_of(connection, workspace_id, [run_id], name)), None)
            if series is None or series.kind == REFERENCE:
                return []
            if series.points > _ALL_OF_A_CHART:
                return _of_peaks(connection, series, most)
            return _of_points(blocks.spans(connection, series.pk, 0, series.points), most)


def _of_points(spans: Iterable[blocks.Span], most: int) -> list[tuple[float, int | None, float]]:
    drawn = [blocks.drawable(span) for span in spans]
    numbers: list[float] = []
    for span in drawn:
        numbers += span.values
    chosen, found, before = thinned(numbers, most), [], 0
    for span in drawn:  # only of those that are chosen is it asked when they were logged
        until = before + len(span.values)
        mine = chosen[bisect_left(chosen, before) : bisect_left(chosen, until)]
        found += [(span.times[i - before], span.steps[i - before], numbers[i]) for i in mine]
        before = until
    return found


def _of_peaks(connection: Connection, series: Any, most: int) -> list[tuple[float, int | None, float]]:
    inner = [point for part in blocks.peaks(connection, series.pk, series.points) for point in part]
    first, last = (
        [point for span in blocks.spans(connection, series.pk, at, at + 1) for point in blocks.points_to_draw(span)]
        for at in (0, series.points - 1)
    )
    points = [*first, *inner[inner[:1] == first : len(inner) - (inner[-1:] == last)], *last]
    return [points[i] for i in thinned([number for _, _, number in points], most)]


def _series_of(connection: Connection, workspace_id: str, run_ids: Sequence[str], name: str | None) -> Iterator[Any]:
    """The series of these runs with the ids of their runs, those of a run in the order they began."""
    for first in range(0, len(run_ids), _RUNS_AT_ONCE):
        query = (
            select(runs.c.id, metric_series)
            .join(runs, metric_series.c.run_pk == runs.c.pk)
            .where(runs.c.workspace_id == workspace_id, runs.c.id.in_(run_ids[first : first + _RUNS_AT_ONCE]))
            .order_by(metric_series.c.pk)
        )
        yield from connection.execute(query if name is None else query.where(metric_series.c.name == name)).all()


_RUN = Prepared(
    select(runs.c.pk, runs.c.id, runs.c.root_id, runs.c.experiment_pk).where(
        runs.c.workspace_id == bindparam("w"), runs.c.id == bindparam("r")
    )
)
_POSITION = Prepared(
    select(journals.c.position).where(journals.c.run_pk == bindparam("p"), journals.c.stream == bindparam("s"))
)
_ALL_SERIES = Prepared(select(metric_series).where(metric_series.c.run_pk == bindparam("p")))
_ONE_SERIES = Prepared(
    select(metric_series).where(metric_series.c.run_pk == bindparam("p"), metric_series.c.name == bindparam("n"))
)
_SUMMARY = ("points", "last", "least", "greatest")
_ADD_SERIES = Prepared(insert(metric_series), ("run_pk", "experiment_pk", "name", "kind", *_SUMMARY))
_SUM_UP = Prepared(update(metric_series).where(metric_series.c.pk == bindparam("which")), _SUMMARY)
_MOVE = Prepared(
    upsert(journals).on_conflict_do_update(
        index_elements=["run_pk", "stream"], set_={"position": upsert(journals).excluded.position}
    )
)


def _run(connection: Connection, workspace_id: str, run_id: str) -> Any:
    row = _RUN.first(connection, {"w": workspace_id, "r": run_id})
    if row is None:
        raise NotFound(f"No run with id '{run_id}' in this workspace.")
    return row


def _descendant(connection: Connection, workspace_id: str, run: Any, run_id: str) -> Any:
    """A run below `run`; None for any other, whatever it is."""
    query = select(runs.c.pk, runs.c.id, runs.c.root_id, runs.c.parent_id, runs.c.experiment_pk)
    row = connection.execute(query.where(runs.c.workspace_id == workspace_id, runs.c.id == run_id)).first()
    above = row
    while above is not None and above.parent_id is not None:
        if above.parent_id == run.id:
            return row
        parent = query.where(runs.c.workspace_id == workspace_id, runs.c.id == above.parent_id)
        above = connection.execute(parent).first()
    return None


def _position(connection: Connection, run_pk: int, stream: str) -> int:
    row = _POSITION.first(connection, {"p": run_pk, "s": stream})
    return 0 if row is None else int(row.position)


def _append(connection: Connection, run: Any, logged: list[Logged]) -> None:
    names: dict[str, str] = {}  # each with the kind of its first point
    for each in logged:
        names.setdefault(each.name, each.kind)
    known = {
        row.name: _Series(row.pk, row.kind, row.points, row.last, row.least, row.greatest)
        for row in _named(connection, run.pk, names)
    }
    fresh = {name: _Series(0, kind, 0, None, None, None) for name, kind in names.items() if name not in known}
    for each in logged:
        (known.get(each.name) or fresh[each.name]).take(each)
    if fresh:
        home = {"run_pk": run.pk, "experiment_pk": run.experiment_pk}
        _ADD_SERIES.run(connection, [dict(home, name=name, kind=s.kind, **s.summary()) for name, s in fresh.items()])
        for row in _named(connection, run.pk, fresh):
            if row.name in fresh:
                fresh[row.name].pk = row.pk
    _SUM_UP.run(connection, [dict(series.summary(), which=series.pk) for series in known.values() if series.fresh])
    rows: list[dict[str, Any]] = []
    for series in (*known.values(), *fresh.values()):
        count = series.count
        for each in series.fresh:
            rows += blocks.appended(connection, series.pk, series.kind, count, each)
            count += len(each.values)
    blocks.put(connection, rows)


def _named(connection: Connection, run_pk: int, names: Iterable[str]) -> Iterator[Any]:
    """The series of a run that have these names, and of many names perhaps some others."""
    wanted = list(names)
    if len(wanted) > _FEW_NAMES:
        return _ALL_SERIES.each(connection, {"p": run_pk})
    return (row for name in wanted for row in _ONE_SERIES.all(connection, {"p": run_pk, "n": name}))
