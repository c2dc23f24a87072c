"""100 trivial runs on two slots: CPU of everything that takes part (client, server, agents, scripts), a run."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
import time

import peers
from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu, living_family

from azureml.core import Experiment, ScriptRunConfig

RUNS = 100
SLOTS = 2
PEER_RUNS = 10
ROUNDS = 2
SCRIPT = 'print("hi", flush=True)\n'


def measure(options: Options) -> list[Figure]:
    lapis, bare = [], []
    with Home() as home:
        experiment, folder = home.experiment(), home.source(SCRIPT)
        _submit(experiment, folder, 2)
        _wait_until_settled()
        for _ in range(ROUNDS):
            lapis.append(_lapis(experiment, folder))
            bare.append(_plain(folder))
        found = peers.ask(options.peers, "submitit_many", f"{folder}/train.py", PEER_RUNS) if options.peers else None
    cpus = [_reading("Lapis", [c.cpu for c in lapis]), _reading("bare: python script.py", [c.cpu for c in bare])]
    walls = [_reading("Lapis", [c.wall for c in lapis]), _reading("bare: python script.py", [c.wall for c in bare])]
    if found:
        cpus.append(Reading("submitit", found["cpu"], note=f"{PEER_RUNS} runs"))
        walls.append(Reading("submitit", found["wall"], note=f"{PEER_RUNS} runs"))
    what = f"{RUNS} trivial runs on {SLOTS} slots"
    return [
        Figure(f"{what}, CPU of a run", "s", cpus, Asked(times_bare=10)),
        Figure(f"{what}, time of a run", "s", walls),
    ]


def _reading(system: str, totals: list[float]) -> Reading:
    return Reading(system, [total / RUNS for total in totals], bare=system.startswith("bare"))


def _lapis(experiment: Experiment, folder: str) -> Clock:
    before = living_family()  # the server, and what it keeps running
    clock = Clock(family_cpu)
    with clock:
        began = time.perf_counter()
        _submit(experiment, folder, RUNS)
        wall = time.perf_counter() - began
        _wait_until_settled(before)  # agents tidy up after their verdict: that counts too
    clock.wall = wall
    return clock


def _submit(experiment: Experiment, folder: str, count: int) -> None:
    for run in [experiment.submit(ScriptRunConfig(folder, "train.py")) for _ in range(count)]:
        run.wait_for_completion()


def _wait_until_settled(before: set[int] | None = None) -> None:
    """Until there are no more processes than `before`; without it, until none has come or gone for a second.

    Which ones they are changes: the next agent is forked ahead.
    """
    deadline, since, last = time.monotonic() + 30, time.monotonic(), living_family()
    while time.monotonic() < deadline:
        time.sleep(0.1)
        now = living_family()
        if before is not None and len(now) <= len(before):
            return
        if now != last:
            since, last = time.monotonic(), now
        if before is None and time.monotonic() - since > 1.0:
            return
    raise AssertionError("Processes of the runs were still there after 30 s.")


def _plain(folder: str) -> Clock:
    command = [sys.executable, f"{folder}/train.py"]
    with Clock() as clock, concurrent.futures.ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(lambda _: subprocess.run(command, check=True, capture_output=True), range(RUNS)))
    return clock


if __name__ == "__main__":
    alone(measure)
