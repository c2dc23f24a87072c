"""What the benchmarks share: clocks for wall and CPU time, figures as values, and their table."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# An installed package has its byte code; compiling it at every start again is not what is measured here.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


COSTS = ("s", "MB", "KB")  # units of which less is better


@dataclass(frozen=True)
class Reading:
    """What one system needed, a sample for each round."""

    system: str
    samples: Sequence[float]
    cpu: Sequence[float] = ()
    bare: bool = False  # the operation itself, without any system around it
    note: str = ""


@dataclass(frozen=True)
class Asked:
    """What the first reading of a figure is held to: one of these."""

    most: float | None = None
    least: float | None = None
    times_bare: float | None = None
    more_than_bare: float | None = None
    times_last: float | None = None  # the rate of the last reading so many times


@dataclass(frozen=True)
class Figure:
    """One thing measured for several systems in one go. Lapis comes first. `unit` is s, MB, or a rate."""

    what: str
    unit: str
    readings: Sequence[Reading]
    asked: Asked | None = None

    @staticmethod
    def from_json(body: dict[str, Any]) -> Figure:
        readings = [Reading(**reading) for reading in body["readings"]]
        asked = Asked(**body["asked"]) if body["asked"] else None
        return Figure(body["what"], body["unit"], readings, asked)


@dataclass(frozen=True)
class Options:
    peers: str | None  # the interpreter of the compared systems
    slow: bool  # with peers that take minutes


class Clock:
    """`with Clock() as clock:` then `clock.wall` and `clock.cpu`, of this process and children that have ended."""

    def __init__(self, used: Callable[[], float] | None = None) -> None:
        self._used = used or own_cpu
        self.wall = self.cpu = 0.0

    def __enter__(self) -> Clock:
        self.cpu = -self._used()
        self.wall = -time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += self._used()


def own_cpu() -> float:
    """CPU seconds of this process and of those of its children that were waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def family_cpu() -> float:
    """CPU seconds of this process and of all it ever started, directly or not, alive or ended.

    Nothing is missed after `adopt_orphans`: who ends is counted by the parent that waited for it, and who loses its
    parent becomes our child. Zombies keep their counters.
    """
    ticks = sum(sum(int(field) for field in fields[11:15]) for fields in _descendants().values())
    return ticks / os.sysconf("SC_CLK_TCK") + own_cpu()


def cpu_of(pid: int) -> float:
    """CPU seconds of one process that runs."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def living_family() -> set[int]:
    """The processes below this one that still run."""
    return {pid for pid, fields in _descendants().items() if fields[0] not in (b"Z", b"X")}


def adopt_orphans() -> None:
    """Make this process the parent of every orphan below it, so that no CPU time goes to init uncounted."""
    if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0):  # PR_SET_CHILD_SUBREAPER
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _descendants() -> dict[int, list[bytes]]:
    """The fields of /proc/<pid>/stat from the third on, for every process below this one."""
    seen: dict[int, list[bytes]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                seen[int(entry.name)] = (entry / "stat").read_bytes().rsplit(b")", 1)[1].split()
            except (OSError, IndexError):
                continue
    mine, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, fields in seen.items() if int(fields[1]) in mine} - mine
        grown = bool(more)
        mine |= more
    return {pid: seen[pid] for pid in mine - {os.getpid()}}


def table(figures: Sequence[Figure]) -> str:
    """As Markdown. The ratio is to the bare operation: how many times its cost, or its rate divided by ours."""
    head = ["figure", "system", "median", "low - high", "rounds", "CPU", "times the bare", "asked for"]
    rows = [row for figure in figures for row in _rows(figure)]
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, *rows]]
    return "\n".join([lines[0], "|---|---|---:|---:|---:|---:|---:|---|", *lines[1:]])


def _rows(figure: Figure) -> list[list[str]]:
    rows = []
    for place, reading in enumerate(figure.readings):
        low, high = min(reading.samples), max(reading.samples)
        rows.append(
            [
                figure.what if place == 0 else "",
                reading.system + (f" ({reading.note})" if reading.note else ""),
                f"**{_shown(_median(reading), figure.unit)}**" if place == 0 else _shown(_median(reading), figure.unit),
                f"{_shown(low, figure.unit)} - {_shown(high, figure.unit)}",
                str(len(reading.samples)),
                _shown(statistics.median(reading.cpu), "s") if reading.cpu else "",
                _ratio(figure, reading),
                _verdict(figure) if place == 0 else "",
            ]
        )
    return rows


def _median(reading: Reading) -> float:
    return statistics.median(reading.samples)


def _bare(figure: Figure) -> Reading | None:
    return next((reading for reading in figure.readings if reading.bare), None)


def _times_bare(figure: Figure, reading: Reading) -> float | None:
    bare = _bare(figure)
    if bare is None:
        return None
    cost, limit = _median(reading), _median(bare)
    return cost / limit if figure.unit in COSTS else limit / cost


def _ratio(figure: Figure, reading: Reading) -> str:
    times = _times_bare(figure, reading)
    return "" if times is None else f"{_digits(times)}"


def _verdict(figure: Figure) -> str:
    asked, ours = figure.asked, figure.readings[0]
    if asked is None:
        return ""
    if asked.most is not None:
        return _met(f"at most {_shown(asked.most, figure.unit)}", _median(ours) <= asked.most)
    if asked.least is not None:
        return _met(f"at least {_shown(asked.least, figure.unit)}", _median(ours) >= asked.least)
    if asked.times_last is not None:
        ratio = _median(ours) / _median(figure.readings[-1])
        return _met(f"at least {asked.times_last:g} times the last: {_digits(ratio)}", ratio >= asked.times_last)
    times, bare = _times_bare(figure, ours), _bare(figure)
    assert times is not None and bare is not None
    if asked.times_bare is not None:
        return _met(f"at most {asked.times_bare:g} times the bare", times <= asked.times_bare)
    assert asked.more_than_bare is not None
    more = _median(ours) - _median(bare)
    text = f"at most {_shown(asked.more_than_bare, 's')} more than the bare: {_shown(more, 's')}"
    return _met(text, more <= asked.more_than_bare)


def _met(text: str, met: bool) -> str:
    return f"{text}, {'met' if met else 'missed'}"


def _shown(value: float, unit: str) -> str:
    if unit != "s":
        return f"{_digits(value)} {unit}"
    for factor, name in ((1.0, "s"), (1e3, "ms")):
        if abs(value) * factor >= 1.0:
            return f"{_digits(value * factor)} {name}"
    return f"{_digits(value * 1e6)} µs"


def _digits(value: float) -> str:
    """Three that count, and no exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def alone(measure: Callable[[Options], list[Figure]]) -> None:
    """The main function of every section: measure, then print the table, or JSON for `run.py`."""
    import peers

    parser = argparse.ArgumentParser(description=sys.modules[measure.__module__].__doc__)
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="print the samples instead of a table")
    given = parser.parse_args()
    with scratch():
        figures = measure(Options(None if given.no_peers else peers.interpreter(), given.peers_slow))
    print(json.dumps([asdict(figure) for figure in figures]) if given.json else table(figures))


@contextmanager
def scratch() -> Iterator[None]:
    """Where all temporary files go; removed at the very end of the run, not between measurements.

    After many files were deleted ext4 is slower to make new ones for a while: that would count against whoever is next.
    """
    given = os.environ.get("BENCH_SCRATCH")
    tempfile.tempdir = given or tempfile.mkdtemp(prefix="lapis-bench-")
    os.environ["BENCH_SCRATCH"] = tempfile.tempdir
    try:
        yield
    finally:
        if given is None:
            shutil.rmtree(tempfile.tempdir, ignore_errors=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-peers", action="store_true", help="without the systems compared with")
    parser.add_argument("--peers-slow", action="store_true", help="with what takes the compared systems minutes")
