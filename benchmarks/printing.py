"""A script that prints a million lines: CPU of everything that takes part, and how soon a line is with the server.

Bare is `python script.py > file`, which collects what it prints in pieces of 8 kB; beside it the same with
PYTHONUNBUFFERED=1, as scripts of runs have it: each line is there at once, whoever is killed next.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu

from azureml.core import Experiment, ScriptRunConfig

LINES, ROUNDS, SEEN = 1_000_000, 3, 10
SCRIPT = """
import sys, time
for number in range(int(sys.argv[1])):
    print("line", number)
if sys.argv[2:]:
    for _ in range(int(sys.argv[2])):
        time.sleep(0.3)
        print("now", time.time())
"""


def measure(options: Options) -> list[Figure]:
    lapis: list[float] = []
    buffered: list[float] = []
    at_once: list[float] = []
    with Home() as home:
        experiment, folder = home.experiment(), home.source(SCRIPT)
        _submit(experiment, folder, 1000)
        for _ in range(ROUNDS):
            buffered.append(_plain(folder, {}))
            at_once.append(_plain(folder, {"PYTHONUNBUFFERED": "1"}))
            with Clock(family_cpu) as clock:
                _submit(experiment, folder, LINES)
            lapis.append(clock.cpu)
        seen = _seen(experiment, folder)
    readings = [
        Reading("Lapis", lapis),
        Reading("bare: python script.py > file", buffered, bare=True),
        Reading("with PYTHONUNBUFFERED=1", at_once),
    ]
    return [
        Figure(f"a script that prints {LINES:,} lines, CPU", "s", readings, Asked(times_bare=1.5)),
        Figure("from print to the server, of a line now and then", "s", [Reading("Lapis", seen)], Asked(most=0.2)),
    ]


def _plain(folder: str, more: dict[str, str]) -> float:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open(Path(folder).parent / "printed", "wb") as file, Clock() as clock:
        command = [sys.executable, "train.py", str(LINES)]
        subprocess.run(command, cwd=folder, env={**environ, **more}, stdout=file, check=True)
    return clock.cpu


def _submit(experiment: Experiment, folder: str, lines: int) -> None:
    run = experiment.submit(ScriptRunConfig(folder, "train.py", [lines]))
    run.wait_for_completion()
    assert run.get_status() == "Completed"


def _seen(experiment: Experiment, folder: str) -> list[float]:
    """Seconds from each line that says when it was printed, until the server has it."""
    run = experiment.submit(ScriptRunConfig(folder, "train.py", [0, SEEN]))
    log, offset, waits = "user_logs/std_log.txt", 0, []
    while len(waits) < SEEN:
        seen = run._call("GET", "/watch", query={"revision": 10**9, "wait": 20, "log": log, "offset": offset})
        now = time.time()
        if seen["length"] <= offset:
            continue
        pieces: list[bytes] = []
        run._client.download(f"{run._base}/files/{log}", pieces.append, {"offset": offset})
        fresh = b"".join(pieces).decode()
        offset += len(fresh)
        waits += [now - float(line.split()[1]) for line in fresh.splitlines()]
    run.wait_for_completion()
    return waits


if __name__ == "__main__":
    alone(measure)
