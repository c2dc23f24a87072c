"""Lists of a store that grows from 100 to 1,000,000 runs: `python benchmarks/growth.py --write` draws them.

The runs are made by the server's own code: each is created, logs two metrics and ends, through the calls of control
that requests make, a thousand in one transaction. Each list is then asked for as users do: over HTTP, of a real server.
From 1,000 runs on each page is full, so that it is the same work.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from growth_picture import Curve, picture
from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, scratch

from lapis.client import local_server
from lapis.client.http_client import Client, Endpoint
from lapis.domain.metrics import Point, to_line
from lapis.domain.run_filter import RunFilter
from lapis.machine import json_files
from lapis.server.app import make_system
from lapis.server.control.runs import NewRun
from lapis.server.system import System

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
MOST_TIMES, MOST_SECONDS = 1.5, 0.015  # of the smallest of 1,000 runs or more; of any list
_FROM = 1_000
_AT_ONCE = 1_000
_ROUNDS = 25
_EXPERIMENTS = 5
_DOCS = Path(__file__).resolve().parent.parent / "docs"
_BEGIN, _END = "<!-- growth: begin -->", "<!-- growth: end -->"

Seen = dict[str, dict[int, tuple[list[float], float]]]  # of a list, by size: seconds of each round, and CPU of one


def measure(_: Options) -> list[Figure]:
    seen = grow(SIZES)
    most = SIZES[-1]
    figures = []
    for what, by_size in seen.items():
        if _FROM in by_size:
            small, large = (Reading(f"{size:,} runs", *_samples(by_size[size])) for size in (_FROM, most))
            bare = Reading(small.system, small.samples, small.cpu, bare=True)
            figures.append(Figure(f"{what}, of {most:,} runs", "s", [large, bare], Asked(times_bare=MOST_TIMES)))
    slowest = max((by_size[most] for by_size in seen.values()), key=lambda each: statistics.median(each[0]))
    reading = Reading(f"{most:,} runs", *_samples(slowest))
    return [*figures, Figure("the slowest of these lists", "s", [reading], Asked(most=MOST_SECONDS))]


def grow(sizes: tuple[int, ...]) -> Seen:
    seen: Seen = {}
    with Home() as home:
        try:
            for size in sizes:
                began = time.monotonic()
                workspace_id = fill(home, size)
                took, bytes_used = time.monotonic() - began, Path(home.settings.home, "lapis.db").stat().st_size
                print(f"{size:,} runs after {took:.0f} s more; {bytes_used / size:,.0f} bytes a run", file=sys.stderr)
                home.start()
                server = int((local_server.running(home.settings) or {})["pid"])
                for what, ask in _lists(workspace_id, size).items():
                    seen.setdefault(what, {})[size] = _timed(ask, server)
                home.stop()
        finally:
            shutil.rmtree(home.settings.home, ignore_errors=True)  # it is large
    return seen


# -- made


def fill(home: Home, size: int) -> str:
    """Make runs until there are `size`; the id of their workspace."""
    system = make_system(home.settings, "http://127.0.0.1:1", time.time, lambda: None)
    try:
        workspace_id = str(system.control.workspaces.find(name="default")[0]["id"])
        newest, _ = system.stores.runs.find(RunFilter(workspace_id), 1)
        begin = int(newest[0].id.rpartition("-")[2]) + 1 if newest else 0
        for first in range(begin, size, _AT_ONCE):
            _make(system, workspace_id, range(first, min(first + _AT_ONCE, size)))
        json_files.write(
            os.path.join(home.settings.home, "upkeep.json"), {"at": time.time()}
        )  # nothing is collected now
        return workspace_id
    finally:
        system.stores.database.close()


def _make(system: System, workspace_id: str, numbers: range) -> None:
    runs, chance = system.control.runs, random.Random(numbers.start)
    with system.stores.database.write():
        for number in numbers:
            tags = {
                "model": f"m{chance.randrange(10)}",
                **({"rare": "yes"} if number < _FROM and number % 20 == 7 else {}),
            }
            experiment = f"e{chance.randrange(_EXPERIMENTS)}"
            run_id = f"run-{number}"
            runs.create(workspace_id, [NewRun(experiment, run_id, run_id, tags=tags, target="sdk", started=True)])
            at, good = time.time(), chance.random()
            points = [Point("scalar", at, "accuracy", good), Point("scalar", at, "loss", 1 - good)]
            journal = b"".join(map(to_line, points))
            failed = chance.random() < 0.2
            verdict = {"state": "Failed" if failed else "Completed", "reason": "So it went", "error": None}
            header = {"parts": [{"kind": "journal", "stream": "journal", "offset": 0}], "verdict": verdict,
                      "ends": {"journal:journal": len(journal)}}  # fmt: skip
            runs.report(workspace_id, run_id, header, [memoryview(journal)])


# -- asked for


def _lists(workspace_id: str, size: int) -> dict[str, Callable[[], int]]:
    """Each gives how many runs it found."""
    url, token = local_server.client().endpoint.find()
    client = Client(Endpoint(url, token))

    def found(**query: Any) -> Callable[[], int]:
        path = f"/workspaces/{workspace_id}/runs"
        return lambda: len(client.call("GET", path, query={"limit": 100, **query})["runs"])

    experiments = f"/workspaces/{workspace_id}/experiments"
    return {
        "newest 100 of a workspace": found(),
        "newest 100 of an experiment": found(experiment="e3"),
        "page of the newest 50": _page(url, token, f"/studio/{workspace_id}/runs"),
        "list of experiments": lambda: len(client.call("GET", experiments)["experiments"]),
        "best 100 by a metric": found(maximize="accuracy"),
        "best 100 that have completed": found(maximize="accuracy", status="Completed"),
        "best 100 that have failed": found(minimize="loss", status="Failed"),
        "best 100 of an experiment": found(maximize="accuracy", experiment="e3"),
        "with a rare tag": found(tag="rare"),
        "newest 100 that have failed": found(status="Failed"),
        **(
            {
                "failed, with a tag, of an experiment": found(status="Failed", tag="model=m3", experiment="e3"),
                "page 1,000": found(cursor=size - 99_900),
            }
            if size >= 100_000
            else {}
        ),
    }


def _page(url: str, token: str, path: str) -> Callable[[], int]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    cookie: dict[str, str] = {}

    def ask() -> int:
        if not cookie:  # only now: a connection that says nothing is closed after a while
            connection.request("POST", "/studio/login", body=token)
            answer = connection.getresponse()
            answer.read()
            cookie["Cookie"] = str(answer.getheader("set-cookie")).partition(";")[0]
        connection.request("GET", path, headers=cookie)
        return connection.getresponse().read().count(b"<tr>") - 1

    return ask


def _timed(ask: Callable[[], int], server: int) -> tuple[list[float], float]:
    for _ in range(3):
        ask()
    walls, used = [], Clock(lambda: time.process_time() + _cpu_of(server))
    with used:
        for _ in range(_ROUNDS):
            with Clock() as clock:
                ask()
            walls.append(clock.wall)
    return walls, used.cpu / _ROUNDS


def _cpu_of(pid: int) -> float:
    """Of all its threads, in nanoseconds' grain: a list is over in less than one of the kernel's ticks."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def _samples(timed: tuple[list[float], float]) -> tuple[list[float], list[float]]:
    return timed[0], [timed[1]]


# -- shown


def _table(seen: Seen, sizes: tuple[int, ...]) -> str:
    head = ["ms", *(f"{size:,}" for size in sizes), "growth", "CPU", "growth of CPU"]
    rows = []
    for what, by_size in seen.items():
        medians = {size: statistics.median(walls) * 1000 for size, (walls, _) in by_size.items()}
        cpus = {size: cpu * 1000 for size, (_, cpu) in by_size.items()}
        cells = [f"{medians[size]:.1f}" if size in medians else "" for size in sizes]
        rows.append([what, *cells, _growth(medians, sizes[-1]), f"{cpus[sizes[-1]]:.1f}", _growth(cpus, sizes[-1])])
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, *rows]]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(head) - 1), *lines[1:]])


def _growth(of: dict[int, float], to: int) -> str:
    return f"{of[to] / of[_FROM]:.2f}" if _FROM in of else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="runs at the end")
    parser.add_argument("--write", action="store_true", help="put the curves into docs/performance.md")
    given = parser.parse_args()
    sizes = tuple(size for size in SIZES if size <= given.most)
    began, load = time.monotonic(), os.getloadavg()[0]
    with scratch():
        seen = grow(sizes)
    about = (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load average {load:.1f} at the beginning and "
        f"{os.getloadavg()[0]:.1f} at the end; {time.monotonic() - began:.0f} s in all. Medians of {_ROUNDS} rounds "
        f"over HTTP; growth is from {_FROM:,} runs to {sizes[-1]:,}. CPU is that of client and server for one list, "
        "and what is drawn: it does not depend on what else the machine does."
    )
    text = f"{about}\n\n{_table(seen, sizes)}"
    print(text)
    if given.write:
        curves = [
            Curve(what, [(size, cpu * 1000) for size, (_, cpu) in by_size.items()]) for what, by_size in seen.items()
        ]
        (_DOCS / "growth.svg").write_text(picture(curves, sizes, MOST_SECONDS * 1000))
        page = _DOCS / "performance.md"
        before, _, rest = page.read_text().partition(_BEGIN)
        page.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{rest.partition(_END)[2]}")


if __name__ == "__main__":
    if "--json" in sys.argv:
        alone(measure)  # as a section of run.py
    else:
        main()
