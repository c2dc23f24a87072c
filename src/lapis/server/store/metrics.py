"""Keeps metric points, a summary for each series, and how far each journal has been taken up."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.metrics import REFERENCE, SCALAR, Point, number_of
from lapis.errors import NotFound
from lapis.server.store.database import Database
from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import journals, metric_points, metric_series, runs


@dataclass
class _Series:
    pk: int
    kind: str
    count: int
    last: float | None
    least: float | None
    greatest: float | None
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, point: Point) -> None:
        value = point.value
        plain = type(value) is float and value == value  # NaN has no place in a number column
        self.rows.append(
            {
                "seq": self.count,
                "at": point.at,
                "step": point.step,
                "number": value if plain else None,
                "json": None if plain else json.dumps(value, separators=(",", ":")),
                "kind": None if point.kind == self.kind else point.kind,
            }
        )
        self.count += 1
        number = value if plain else number_of(value) if point.kind == SCALAR else None
        if number is not None:
            self.last = number
            self.least = number if self.least is None or number < self.least else self.least
            self.greatest = number if self.greatest is None or number > self.greatest else self.greatest

    def summary(self) -> dict[str, Any]:
        return {"points": self.count, "last": self.last, "least": self.least, "greatest": self.greatest}


class MetricStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, workspace_id: str, run_id: str, stream: str, start: int, end: int, points: Iterable[Point]) -> int:
        """Take up the points of journal bytes `start` to `end`; give the position reached.

        Bytes that do not begin where the last ones ended change nothing: the position tells the sender where to go on.
        """
        with self._database.write() as connection:
            run = _run(connection, workspace_id, run_id)
            position = _position(connection, run.pk, stream)
            if start != position or start == end:
                return position
            by_run: dict[str, list[Point]] = {}
            for point in points:
                by_run.setdefault(point.run_id or run_id, []).append(point)
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
        """Every point of these runs, in the order logged; one query however many runs."""
        query = (
            select(
                runs.c.id,
                metric_series.c.name,
                metric_series.c.kind.label("series_kind"),
                metric_points.c.at,
                metric_points.c.step,
                metric_points.c.number,
                metric_points.c.json,
                metric_points.c.kind,
            )
            .select_from(metric_points.join(metric_series).join(runs, metric_series.c.run_pk == runs.c.pk))
            .where(runs.c.workspace_id == workspace_id, runs.c.id.in_(run_ids))
            .order_by(metric_series.c.pk, metric_points.c.seq)
        )
        if name is not None:
            query = query.where(metric_series.c.name == name)
        found: dict[str, list[Point]] = {run_id: [] for run_id in run_ids}
        with self._database.read() as connection:
            for row in connection.execute(query):
                value = row.number if row.json is None else json.loads(row.json)
                found[row.id].append(Point(row.kind or row.series_kind, row.at, row.name, value, row.step))
        return found

    def numbers(self, workspace_id: str, run_ids: list[str], name: str, start: int = 0) -> dict[str, list[float]]:
        """One metric of these runs from its point `start` on; what is no number is NaN. One query for all of them."""
        query = (
            select(runs.c.id, metric_points.c.number, metric_points.c.json)
            .select_from(metric_points.join(metric_series).join(runs, metric_series.c.run_pk == runs.c.pk))
            .where(runs.c.workspace_id == workspace_id, runs.c.id.in_(run_ids), metric_series.c.name == name)
            .where(metric_points.c.seq >= start)
            .order_by(metric_series.c.pk, metric_points.c.seq)
        )
        found: dict[str, list[float]] = {run_id: [] for run_id in run_ids}
        with self._database.read() as connection:
            for row in connection.execute(query):
                number = row.number if row.json is None else number_of(json.loads(row.json))
                found[row.id].append(math.nan if number is None else number)
        return found

    def summaries(
        self, workspace_id: str, run_ids: list[str], name: str | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        query = (
            select(runs.c.id, metric_series)
            .join(runs, metric_series.c.run_pk == runs.c.pk)
            .where(runs.c.workspace_id == workspace_id, runs.c.id.in_(run_ids))
            .order_by(metric_series.c.pk)
        )
        if name is not None:
            query = query.where(metric_series.c.name == name)
        found: dict[str, list[dict[str, Any]]] = {run_id: [] for run_id in run_ids}
        with self._database.read() as connection:
            for row in connection.execute(query):
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
        query = (
            select(metric_points.c.at, metric_points.c.step, metric_points.c.number, metric_points.c.json)
            .select_from(metric_points.join(metric_series).join(runs, metric_series.c.run_pk == runs.c.pk))
            .where(
                runs.c.workspace_id == workspace_id,
                runs.c.id == run_id,
                metric_series.c.name == name,
                metric_series.c.kind != REFERENCE,
            )
            .order_by(metric_points.c.seq)
        )
        points: list[tuple[float, int | None, float]] = []
        with self._database.read() as connection:
            for row in connection.execute(query):
                number = row.number if row.json is None else number_of(json.loads(row.json))
                if number is not None:
                    points.append((row.at, row.step, number))
        return _thin(points, most)


def _thin(points: list[tuple[float, int | None, float]], most: int) -> list[tuple[float, int | None, float]]:
    if len(points) <= most:
        return points
    width = len(points) / max(1, (most - 2) // 2)
    kept = {0, len(points) - 1}
    for bucket in range(max(1, (most - 2) // 2)):
        stretch = range(int(bucket * width), min(len(points), int((bucket + 1) * width)))
        if stretch:
            kept.add(min(stretch, key=lambda i: points[i][2]))
            kept.add(max(stretch, key=lambda i: points[i][2]))
    return [points[i] for i in sorted(kept)]


_RUN = Prepared(
    select(runs.c.pk, runs.c.id, runs.c.root_id, runs.c.experiment_pk).where(
        runs.c.workspace_id == bindparam("w"), runs.c.id == bindparam("r")
    )
)
_POSITION = Prepared(
    select(journals.c.position).where(journals.c.run_pk == bindparam("p"), journals.c.stream == bindparam("s"))
)
_SERIES = Prepared(select(metric_series).where(metric_series.c.run_pk == bindparam("p")))
_SUMMARY = ("points", "last", "least", "greatest")
_ADD_SERIES = Prepared(insert(metric_series), ("run_pk", "experiment_pk", "name", "kind", *_SUMMARY))
_ADD_POINTS = Prepared(insert(metric_points))
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


def _append(connection: Connection, run: Any, points: list[Point]) -> None:
    known = {
        row.name: _Series(row.pk, row.kind, row.points, row.last, row.least, row.greatest)
        for row in _SERIES.all(connection, {"p": run.pk})
    }
    fresh: dict[str, _Series] = {}
    for point in points:
        series = known.get(point.name) or fresh.get(point.name)
        if series is None:
            series = fresh[point.name] = _Series(0, point.kind, 0, None, None, None)
        series.add(point)
    if fresh:
        home = {"run_pk": run.pk, "experiment_pk": run.experiment_pk}
        _ADD_SERIES.run(connection, [dict(home, name=name, kind=s.kind, **s.summary()) for name, s in fresh.items()])
        for row in _SERIES.all(connection, {"p": run.pk}):
            if row.name in fresh:
                fresh[row.name].pk = row.pk
    grown = [series for series in known.values() if series.rows]
    _SUM_UP.run(connection, [dict(series.summary(), which=series.pk) for series in grown])
    _ADD_POINTS.run(
        connection, [dict(row, series_pk=series.pk) for series in (*grown, *fresh.values()) for row in series.rows]
    )
