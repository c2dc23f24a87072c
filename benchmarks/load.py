"""A full server under load: `python benchmarks/load.py --runs 100000 --points 10000000 --clients 50 --minutes 2`.

Fills a home through the API, then lets clients list, read, log and make runs, and prints how long lists took, what went
wrong, and how much memory the server had at the beginning and at the end. docs/reliability.md holds the figures.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import growth
import psutil
from home import Home
from measure import Asked, Figure, Options, Reading, alone

from lapis.client import local_server
from lapis.client.http_client import Client, Endpoint
from lapis.domain import frames
from lapis.domain.metrics import Point, to_line

_BATCH = 500  # runs in one request
_PROCESSES = 2  # of clients, so that they do not wait for each other's interpreter
_THINKS = 1.0  # seconds between two requests of one client, on average


def measure(_: Options) -> list[Figure]:
    """The same as a section of run.py; the runs are made without HTTP, by `growth.py`."""
    runs, clients, seconds = 100_000, 50, 120.0
    with Home() as home:
        workspace = growth.fill(home, runs)
        home.start()
        about = local_server.running(home.settings)
        assert about is not None
        url, token = local_server.client().endpoint.find()
        names = [f"run-{number}" for number in range(runs)]
        told = _load(url, token, workspace, names, clients, seconds, psutil.Process(int(about["pid"])))
    assert not told["errors"], told["errors"]
    what = f"lists of {clients} clients that list, read, log and make runs for {seconds:g} s, among {runs:,} runs"
    note = f"{told['requests']:,} requests, no error"
    return [
        Figure(f"{what}: {part} of 100", "s", [Reading("Lapis", [told[f"list p{part} ms"] / 1000], note=note)], asked)
        for part, asked in ((95, Asked(most=0.1)), (99, Asked(most=0.15)))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=2.0)
    given = parser.parse_args()
    with Home() as home:
        home.start()
        about = local_server.running(home.settings)
        assert about is not None
        workspace = home.experiment()._workspace._workspace_id
        url, token = local_server.client().endpoint.find()
        began = time.monotonic()
        runs = _fill(Client(Endpoint(url, token)), workspace, given.runs, given.points)
        print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
        told = _load(url, token, workspace, runs, given.clients, given.minutes * 60, psutil.Process(int(about["pid"])))
    print(json.dumps({"runs": given.runs, "points": given.points, "clients": given.clients, **told}, indent=2))


def _fill(client: Client, workspace: str, runs: int, points: int) -> list[str]:
    base, made = f"/workspaces/{workspace}/runs", []
    each = max(1, points // runs)
    for begin in range(0, runs, _BATCH):
        names = [f"filled-{number}" for number in range(begin, min(begin + _BATCH, runs))]
        new = [
            _new(f"e{begin // _BATCH % 20}", name, rare=number % 5000 == 0) for number, name in enumerate(names, begin)
        ]
        client.call("POST", base, {"runs": new})
        for number, name in enumerate(names):
            journal = b"".join(to_line(Point("scalar", 1e9 + n, "loss", random.random(), n)) for n in range(each))
            verdict = {"state": "Failed" if number % 50 == 0 else "Completed", "reason": "filled", "error": None}
            header = {"parts": [{"kind": "journal", "stream": "journal", "offset": 0}], "verdict": verdict,
                      "ends": {"journal:journal": len(journal)}}  # fmt: skip
            client.call("POST", f"{base}/{name}/report", data=frames.encode(header, [journal]))
        made += names
    return made


def _new(experiment: str, name: str, rare: bool) -> dict[str, Any]:
    tags = {"rare": "yes"} if rare else {}
    return {"experiment": experiment, "run_id": name, "nonce": name, "started": True, "tags": tags}


def _load(url: str, token: str, workspace: str, runs: list[str], clients: int, seconds: float, server: Any) -> Any:
    results: Any = multiprocessing.Queue()
    share = clients // _PROCESSES
    crews = [
        multiprocessing.Process(target=_crew, args=(url, token, workspace, runs, share, seconds, results))
        for _ in range(_PROCESSES)
    ]
    before, most = server.memory_info().rss, 0
    for crew in crews:
        crew.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, server.memory_info().rss)
        time.sleep(0.5)
    found = [results.get(timeout=120) for _ in crews]
    for crew in crews:
        crew.join()
    lists = sorted(each for took, _, _ in found for each in took)
    return {
        "requests": sum(count for _, count, _ in found),
        **{f"list p{part} ms": _percentile(lists, part / 100) for part in (50, 95, 99)},
        "errors": [fault for _, _, faults in found for fault in faults][:10],
        "server MB before, most, after": [round(each / 1e6) for each in (before, most, server.memory_info().rss)],
    }  # fmt: skip


def _percentile(sorted_values: list[float], part: float) -> float:
    return round(1000 * sorted_values[int(part * (len(sorted_values) - 1))], 1) if sorted_values else 0.0


def _crew(url: str, token: str, workspace: str, runs: list[str], clients: int, seconds: float, results: Any) -> None:
    took: list[float] = []
    faults: list[str] = []
    counts = [0] * clients

    def work(index: int) -> None:
        chance, client = random.Random(os.getpid() * 1000 + index), Client(Endpoint(url, token))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(chance.expovariate(1 / _THINKS))
            act = chance.choices((_list, _read, _log, _make), weights=(4, 3, 2, 1))[0]
            began = time.monotonic()
            try:
                act(client, workspace, chance, runs)
            except Exception as fault:  # it is counted and shown
                faults.append(f"{act.__name__}: {fault}"[:300])
            if act is _list:
                took.append(time.monotonic() - began)
            counts[index] += 1

    threads = [threading.Thread(target=work, args=(index,)) for index in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put((took, sum(counts), faults))


def _list(client: Client, workspace: str, chance: random.Random, runs: list[str]) -> None:
    query: Callable[[], dict[str, Any]] = chance.choice(
        [lambda: {}, lambda: {"experiment": "e3"}, lambda: {"status": "Failed"}, lambda: {"tag": "rare=yes"}]
    )
    client.call("GET", f"/workspaces/{workspace}/runs", query={"limit": 100, **query()})


def _read(client: Client, workspace: str, chance: random.Random, runs: list[str]) -> None:
    client.call("GET", f"/workspaces/{workspace}/runs/{chance.choice(runs)}/metrics")


def _log(client: Client, workspace: str, chance: random.Random, runs: list[str]) -> None:
    _make(client, workspace, chance, runs, points=100)


def _make(client: Client, workspace: str, chance: random.Random, runs: list[str], points: int = 5) -> None:
    name = f"made-{chance.getrandbits(64):x}"
    base = f"/workspaces/{workspace}/runs"
    client.call("POST", base, {"runs": [{"experiment": "made", "run_id": name, "nonce": name, "started": True}]})
    journal = b"".join(to_line(Point("scalar", 1e9 + n, "loss", 0.5, n)) for n in range(points))
    header = {"parts": [{"kind": "journal", "stream": "journal", "offset": 0}],
              "verdict": {"state": "Completed", "reason": "made", "error": None},
              "ends": {"journal:journal": len(journal)}}  # fmt: skip
    client.call("POST", f"{base}/{name}/report", data=frames.encode(header, [journal]))


if __name__ == "__main__":
    if "--json" in sys.argv:
        alone(measure)  # as a section of run.py
    else:
        main()
