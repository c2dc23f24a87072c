"""Keeps the points of a series in blocks: rows of the database that hold many points each, as packed columns.

A small block is open: the next points are added to it. So a script that logs a point now and then rewrites a page of
the database for it, and one that logs thousands at once makes a row of thousands.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, case, func, literal_column, select
from sqlalchemy.dialects.sqlite import insert

from lapis.domain.columns import pack, unpack
from lapis.domain.metrics import SCALAR, number_of
from lapis.server.store.logged import Logged
from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import metric_blocks

LARGEST = 4096  # numbers in a block
LARGEST_OTHER = 256  # texts, lists, rows or tables
OPEN_BELOW = 256  # points; with that many it is closed
_OPEN_BYTES = 8192  # a block of longer values is closed sooner


class Span(NamedTuple):
    """Points of one kind that follow each other in a series, unpacked."""

    kind: str | None
    values: Sequence[Any]
    times: Sequence[float]
    steps: Sequence[int | None]


def appended(
    connection: Connection, series_pk: int, series_kind: str, count: int, logged: Logged
) -> Iterator[dict[str, Any]]:
    """The rows to `put` so that a series of `count` points goes on with these; its open block is among them, grown."""
    kind = None if logged.kind == series_kind else logged.kind
    start, values, times, steps = count, logged.values, logged.times, logged.steps
    last = _OPEN.first(connection, {"s": series_pk, "after": count - OPEN_BELOW}) if count else None
    if last is not None and last.kind == kind and last.start + last.points == count:
        start = last.start
        values = [*unpack(last.value, last.points), *values]
        times = [*unpack(last.at, last.points), *times]
        steps = [*unpack(last.step, last.points), *steps]
    largest = LARGEST if set(map(type, values)) <= {float, int} else LARGEST_OTHER
    for first in range(0, len(values), largest):
        cut = slice(first, first + largest)
        span = Span(kind, values[cut], times[cut], steps[cut])
        drawn = logged.kind == SCALAR and len(span.values) >= OPEN_BELOW
        yield {
            "series_pk": series_pk,
            "start": start + first,
            "peaks": _peaks(span) if drawn else None,
            **_packed(span),
        }


def put(connection: Connection, rows: list[dict[str, Any]]) -> None:
    _PUT.run(connection, rows)


def _packed(span: Span) -> dict[str, Any]:
    times = pack(list(map(float, span.times)))
    return {"points": len(span.values), "kind": span.kind, "value": pack(span.values), "at": times,
            "step": pack(span.steps)}  # fmt: skip


def spans(connection: Connection, series_pk: int, start: int, end: int) -> Iterator[Span]:
    """The points of a series from number `start` up to number `end`."""
    for row in connection.execute(_within(series_pk, start, end, metric_blocks)):
        cut = slice(max(0, start - row.start), end - row.start)
        columns = (unpack(data, row.points)[cut] for data in (row.value, row.at, row.step))
        yield Span(row.kind, *columns)


def values(
    connection: Connection, series_pk: int, start: int, end: int
) -> Iterator[tuple[int, int, str | None, bytes]]:
    """The same without times and steps, and packed: where it starts, how many values, their kind, and they.

    A block that has grown beyond `end` meanwhile is cut there; one that begins before `start` is not asked for.
    """
    for row in _VALUES.each(connection, {"s": series_pk, "start": start, "end": end}):
        if row.start + row.points <= end:
            yield row.start, row.points, row.kind, row.value
        else:
            yield row.start, end - row.start, row.kind, pack(unpack(row.value, row.points)[: end - row.start])


def numbers_of(values: Sequence[Any]) -> Sequence[float]:
    """Those of the values that can be drawn and compared."""
    if isinstance(values, array):
        values = values.tolist()
    if set(map(type, values)) == {float}:
        total = sum(values)
        return values if total == total else [value for value in values if value == value]  # not NaN
    return [number for number in map(number_of, values) if number is not None]


def drawable(span: Span) -> Span:
    """With those of its points that are numbers."""
    numbers = numbers_of(span.values)
    if len(numbers) == len(span.values):
        return span._replace(values=numbers)
    points = points_to_draw(span)
    return Span(span.kind, [p[2] for p in points], [p[0] for p in points], [p[1] for p in points])


def peaks(connection: Connection, series_pk: int, end: int) -> Iterator[list[tuple[float, int | None, float]]]:
    """For a chart of a very long series: of every block its lowest and its highest point, or all of a small one."""
    unless_told = [case((metric_blocks.c.peaks.is_(None), column)).label(column.name) for column in _COLUMNS]
    query = _within(
        series_pk, 0, end, metric_blocks.c.start, metric_blocks.c.points, metric_blocks.c.peaks, *unless_told
    )
    for row in connection.execute(query):
        if row.peaks is not None:
            yield [tuple(point) for point in json.loads(row.peaks)]
        else:
            yield points_to_draw(Span(None, *(unpack(data, row.points) for data in (row.value, row.at, row.step))))


def points_to_draw(span: Span) -> list[tuple[float, int | None, float]]:
    """(time, step, number) of all that are numbers."""
    drawn = zip(span.times, span.steps, map(number_of, span.values), strict=True)
    return [(at, step, number) for at, step, number in drawn if number is not None]


def _peaks(span: Span) -> str | None:
    numbers = numbers_of(span.values)
    if len(numbers) < len(span.values):
        return None  # something else is among them: a chart reads all of it
    at = sorted({numbers.index(min(numbers)), numbers.index(max(numbers))})
    return json.dumps([(span.times[i], span.steps[i], numbers[i]) for i in at], separators=(",", ":"))


_COLUMNS = (metric_blocks.c.value, metric_blocks.c.at, metric_blocks.c.step)


def _within(series_pk: int, start: int, end: int, *columns: Any) -> Any:
    series = select(*columns).where(metric_blocks.c.series_pk == series_pk, metric_blocks.c.start < end)
    return series.where(metric_blocks.c.start + metric_blocks.c.points > start).order_by(metric_blocks.c.start)


_OPEN = Prepared(
    select(metric_blocks)
    .where(metric_blocks.c.series_pk == bindparam("s"), metric_blocks.c.start > bindparam("after"))
    .where(func.length(metric_blocks.c.value) < literal_column(str(_OPEN_BYTES)))
    .order_by(metric_blocks.c.start.desc())
)
_VALUES = Prepared(
    select(metric_blocks.c.start, metric_blocks.c.points, metric_blocks.c.kind, metric_blocks.c.value)
    .where(metric_blocks.c.series_pk == bindparam("s"))
    .where(metric_blocks.c.start >= bindparam("start"), metric_blocks.c.start < bindparam("end"))
    .order_by(metric_blocks.c.start)
)
_GROWN = ("points", "peaks", "value", "at", "step")
_PUT = Prepared(
    insert(metric_blocks).on_conflict_do_update(
        index_elements=["series_pk", "start"], set_={name: insert(metric_blocks).excluded[name] for name in _GROWN}
    )
)
