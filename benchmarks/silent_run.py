"""A script that runs and says nothing: what its agent and keeper use meanwhile, and what that costs the server."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
from home import Home
from measure import Asked, Figure, Options, Reading, alone

from azureml.core import ScriptRunConfig
from lapis.client import local_server

SECONDS, ROUNDS = 20.0, 2
SCRIPT = "import time\ntime.sleep(600)\n"
_MEGABYTE = 1024 * 1024


def measure(options: Options) -> list[Figure]:
    with Home() as home:
        run = home.experiment().submit(ScriptRunConfig(home.source(SCRIPT), "train.py"))
        while run.get_status() != "Running":
            time.sleep(0.1)
        server = psutil.Process(int((local_server.running(home.settings) or {})["pid"]))
        time.sleep(5.0)  # what belongs to its start
        ours = [_of_run(server, run.id)[name] for name in ("agent", "keeper")]
        memory = [sum(_own_memory(each) for each in ours)]
        used = [_used(ours) for _ in range(ROUNDS)]
        run.cancel()
        run.wait_for_completion()
    what = "a run that is silent"
    return [
        Figure(f"{what}, CPU of its agent and keeper in a second", "s", [Reading("Lapis", used)], Asked(most=0.0005)),
        Figure(f"{what}, memory of its own", "MB", [Reading("Lapis", memory)], Asked(most=9.0)),
    ]


def _of_run(server: psutil.Process, run_id: str) -> dict[str, psutil.Process]:
    """The agent of that run, and the keeper below it."""
    for each in server.children(recursive=True):
        if each.name() == "lapis-agent" and os.path.basename(each.cwd()) == run_id:
            return {"agent": each, "keeper": each.children()[0]}
    raise AssertionError(f"run {run_id} has no agent")


def _used(processes: list[psutil.Process]) -> float:
    """CPU seconds a second. From the scheduler, to the nanosecond: ticks are too coarse for it."""
    before = sum(map(_on_cpu, processes))
    time.sleep(SECONDS)
    return (sum(map(_on_cpu, processes)) - before) / SECONDS


def _on_cpu(process: psutil.Process) -> float:
    return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9


def _own_memory(process: psutil.Process) -> float:
    """Its share of what it has in common with others, and all that it has alone."""
    return float(process.memory_full_info().pss / _MEGABYTE)


if __name__ == "__main__":
    alone(measure)
