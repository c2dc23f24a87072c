"""Several nodes and a long queue: what they cost beside the bare launcher.

Four ranks on two local nodes until each has run its first line; how well two ranks share a job; and what the server
uses while 200 runs wait.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any

from home import Home
from measure import Asked, Figure, Options, Reading, alone

from azureml.core import Experiment, ScriptRunConfig
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.runconfig import MpiConfiguration
from lapis.client import local_server

ROUNDS = 7
WAITING = 200
# In one piece: ranks share a pipe.
FIRST_LINE = 'import time\nprint(f"first line {time.time()}\\n", end="", flush=True)\n'
# The same work in all, shared by the ranks; when each began and ended is what counts.
SHARED_WORK = """
import json, os, time
began = time.time()
total = 0
for number in range(24_000_000 // int(os.environ["OMPI_COMM_WORLD_SIZE"])):
    total += number * number
print(json.dumps([began, time.time()]), flush=True)
"""
SLEEPS = "import time\ntime.sleep(3600)\n"


def measure(options: Options) -> list[Figure]:
    if shutil.which("mpirun") is None:
        raise SystemExit("mpirun is needed: apt-get install openmpi-bin")
    with Home() as home:
        os.environ["LAPIS_MAX_RUNS"] = "2"
        experiment = home.experiment()
        shape = AmlCompute.provisioning_configuration(min_nodes=2, max_nodes=2)
        ComputeTarget.create(experiment.workspace, "nodes", shape).wait_for_completion(min_node_count=2)
        figures = [_first_lines(home, experiment), _efficiency(home, experiment), _queue(home, experiment)]
    return figures


def _first_lines(home: Home, experiment: Experiment) -> Figure:
    folder = home.source(FIRST_LINE)
    _on_nodes(experiment, folder, 2, 2)
    lapis, bare = [], []
    for _ in range(ROUNDS):
        began = time.time()
        bare.append(max(_times(_plain(folder, 4))) - began)
        began = time.time()
        lapis.append(max(_times("\n".join(_on_nodes(experiment, folder, 2, 2)))) - began)
    readings = [Reading("Lapis", lapis), Reading("bare: mpirun -np 4", bare, bare=True)]
    return Figure("4 ranks on 2 nodes: submit until all ran their first line", "s", readings, Asked(more_than_bare=1.0))


def _efficiency(home: Home, experiment: Experiment) -> Figure:
    """How much of two cores two ranks make use of: 100 % is half the time of one rank. The best of the rounds each."""
    folder = home.source(SHARED_WORK)
    alone_, lapis, bare = [], [], []
    for _ in range(ROUNDS):
        alone_.append(_span([_plain(folder, 1)]))
        bare.append(_span(_plain(folder, 2).splitlines()))
        lapis.append(_span(_on_nodes(experiment, folder, 1, 2)))
    one = min(alone_)
    readings = [
        Reading("Lapis", [100 * one / (2 * min(lapis))], note="2 nodes"),
        Reading("bare: mpirun -np 2", [100 * one / (2 * min(bare))], bare=True),
    ]
    return Figure(
        f"scaling efficiency of 2 ranks, best of {ROUNDS}", "%", readings, Asked(times_bare=round(1 / 0.98, 3))
    )


def _queue(home: Home, experiment: Experiment) -> Figure:
    folder = home.source(SLEEPS)
    runs = [experiment.submit(ScriptRunConfig(folder, "train.py")) for _ in range(WAITING + 2)]
    about = local_server.running(home.settings)
    assert about is not None
    time.sleep(3.0)
    used = []
    for _ in range(5):
        before = _cpu(int(about["pid"]))
        time.sleep(4.0)
        used.append(100 * (_cpu(int(about["pid"])) - before) / 4.0)
    for run in runs:
        run.cancel()
    for run in runs[:2]:
        run.wait_for_completion(raise_on_error=False)
    return Figure(
        f"{WAITING} queued runs: the server while they wait", "% of a core", [Reading("Lapis", used)], Asked(most=5)
    )


def _on_nodes(experiment: Experiment, folder: str, each: int, nodes: int) -> list[str]:
    """What each rank printed."""
    config = ScriptRunConfig(
        folder, "train.py", compute_target="nodes", distributed_job_config=MpiConfiguration(each, nodes)
    )
    run: Any = experiment.submit(config)
    run.wait_for_completion()
    return [run._text_of(f"user_logs/std_log_{rank}.txt") for rank in range(each * nodes)]


def _plain(folder: str, ranks: int) -> str:
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
    return subprocess.run(
        [*command, sys.executable, f"{folder}/train.py"], check=True, capture_output=True, text=True
    ).stdout


def _times(text: str) -> list[float]:
    return [float(line.split()[-1]) for line in text.splitlines() if line.startswith("first line")]


def _span(lines: list[str]) -> float:
    """From when the first rank began to when the last one ended."""
    spans = [json.loads(line.splitlines()[-1]) for line in lines if line.strip()]
    return float(max(end for _, end in spans) - min(begin for begin, _ in spans))


def _cpu(pid: int) -> float:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    alone(measure)
