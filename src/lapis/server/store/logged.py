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

_PIECE = 256 << 10  # bytes read at once: other threads of the server get a turn in between


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
    return _gathered([], points)


def read_journal(data: memoryview) -> list[Logged]:
    """All that can be read in whole lines of a journal; what cannot is a write that was cut short."""
    found: list[Logged] = []
    for piece in _pieces(bytes(data)):
        groups = _columns(piece)
        if groups is None:
            _gathered(found, parse_lines(piece)[0])
            continue
        last = {(logged.run_id, logged.name): logged for logged in found}
        for group in groups:
            same = last.get((group.run_id, group.name))
            if same is None or same.kind != group.kind:
                found.append(group)
            else:
                same.times += group.times
                same.steps += group.steps
                same.values += group.values
    return found


def _gathered(found: list[Logged], points: Iterable[Point]) -> list[Logged]:
    last = {(logged.run_id, logged.name): logged for logged in found}
    for point in points:
        key = point.run_id, point.name
        logged = last.get(key)
        if logged is None or logged.kind != point.kind:
            logged = last[key] = Logged(point.run_id, point.name, point.kind)
            found.append(logged)
        logged.times.append(point.at)
        logged.steps.append(point.step)
        logged.values.append(point.value)
    return found


def _pieces(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PIECE) + 1 or len(data)
        yield data[start:end]
        start = end


def _columns(lines: bytes) -> list[Logged] | None:
    """None where they are better read one by one."""
    try:
        rows = from_json(b"[" + lines.removesuffix(b"\n").replace(b"\n", b",") + b"]")
        if lines.count(b"\n") != len(rows) or set(map(len, rows)) != {6}:
            return None
        groups: dict[tuple[str, str, str], list[list[Any]]] = {}
        for row in rows:
            key = row[5], row[2], row[0]
            try:
                groups[key].append(row)
            except KeyError:
                groups[key] = [row]
        found = [_group(group) for group in groups.values()]
    except (ValueError, TypeError, KeyError):  # KeyError: a dictionary of six
        return None
    sound = [logged for logged in found if logged is not None]
    if len(sound) < len(found) or len({key[:2] for key in groups}) < len(groups):
        return None
    return sound


def _group(rows: list[list[Any]]) -> Logged | None:
    """Points of one series and one kind, if all of them may be stored."""
    first = Point(*rows[0])
    if not is_storable(first):
        return None
    _, times, _, values, steps, _ = zip(*rows, strict=True)
    if first.kind != SCALAR:
        if not all(is_storable(Point(*row)) for row in rows):
            return None
    elif not (_are_times(times) and _are_steps(steps)):
        return None
    return Logged(first.run_id, first.name, first.kind, list(times), list(steps), list(values))


def _are_times(times: tuple[Any, ...]) -> bool:
    total = sum(times) if set(map(type, times)) <= {float, int} else None
    return total is not None and total == total and min(times) >= 0 and max(times) <= WHOLE  # not one of them NaN


def _are_steps(steps: tuple[Any, ...]) -> bool:
    kinds = set(map(type, steps))
    if kinds == {type(None)}:
        return True
    given = [step for step in steps if step is not None] if type(None) in kinds else steps
    return kinds <= {int, type(None)} and min(given) >= -STEP - 1 and max(given) <= STEP
