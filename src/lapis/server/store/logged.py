"""What stands in the bytes of a journal, gathered by series and as columns: so it is checked and stored at once.

A journal has a line for each point. They are read as one JSON document, and each column is checked as a whole; where
anything is unusual, line by line, as `lapis.domain.metrics` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from lapis.domain.limits import STEP, WHOLE
from lapis.domain.metrics import SCALAR, Point, is_storable, parse_lines

# Bytes read at once. Other threads of the server get a turn in between, and so few lists come and go together that
# Python's search for cycles does not begin: it would look at all the server has in memory, for longer than this takes.
_PIECE = 24 << 10


@dataclass
class Logged:
    """Points of one series and one kind, one after the other."""

    run_id: str  # as in `Point`
    name: str
    kind: str
    times: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


def gathered(points: Iterable[Point]) -> list[Logged]:
    gathering = _Gathering()
    gathering.add(points)
    return gathering.found


def read_journal(data: memoryview) -> list[Logged]:
    """All that can be read in whole lines of a journal; what cannot is a write that was cut short."""
    gathering, pieces = _Gathering(), list(_pieces(bytes(data)))
    try:
        for piece in pieces:
            gathering.add(_rows(piece))
        if all(map(_may_be_stored, gathering.found)):
            return gathering.found
    except (ValueError, TypeError):  # no JSON, or no point
        pass
    return gathered(point for piece in pieces for point in parse_lines(piece)[0])


class _Gathering:
    def __init__(self) -> None:
        self.found: list[Logged] = []
        self._last: dict[tuple[str, str], Logged] = {}  # of each series

    def add(self, points: Iterable[Any]) -> None:
        """Points, or what may be some."""
        last = self._last
        for kind, at, name, value, step, run_id in points:
            logged = last.get((run_id, name))
            if logged is None or logged.kind != kind:
                logged = last[run_id, name] = Logged(run_id, name, kind)
                self.found.append(logged)
            logged.times.append(at)
            logged.steps.append(step)
            logged.values.append(value)


def _pieces(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PIECE) + 1 or len(data)
        yield data[start:end]
        start = end


def _rows(lines: bytes) -> list[Any]:
    rows = from_json(b"[" + lines.removesuffix(b"\n").replace(b"\n", b",") + b"]")
    if lines.count(b"\n") != len(rows):
        raise ValueError("Some lines are not whole, or not one thing.")
    return rows  # type: ignore[no-any-return]


def _may_be_stored(logged: Logged) -> bool:
    """As `is_storable` says of each point. What they have in common is looked at once."""
    times, steps, values = logged.times, logged.steps, logged.values
    if logged.kind == SCALAR:
        first = Point(SCALAR, times[0], logged.name, values[0], steps[0], logged.run_id)
        return is_storable(first) and _are_times(times) and _are_steps(steps)
    points = zip(times, values, steps, strict=True)
    return all(
        is_storable(Point(logged.kind, at, logged.name, value, step, logged.run_id)) for at, value, step in points
    )


def _are_times(times: list[Any]) -> bool:
    total = sum(times) if set(map(type, times)) <= {float, int} else None
    return total is not None and total == total and min(times) >= 0 and max(times) <= WHOLE  # not one of them NaN


def _are_steps(steps: list[Any]) -> bool:
    kinds = set(map(type, steps))
    if kinds == {type(None)}:
        return True
    given = [step for step in steps if step is not None] if type(None) in kinds else steps
    return kinds <= {int, type(None)} and min(given) >= -STEP - 1 and max(given) <= STEP
