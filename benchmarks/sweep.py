"""Hyperparameter searches: what a trial costs over its process, and whether that and the reading stay flat."""

from __future__ import annotations

import concurrent.futures
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import peers
from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu

from azureml.core import Experiment, ScriptRunConfig
from azureml.train.hyperdrive import HyperDriveConfig, HyperDriveRun, RandomParameterSampling, uniform
from lapis.domain.job import Job, Search, TrialTemplate
from lapis.domain.metrics import Point
from lapis.domain.run import RunState
from lapis.server.app import make_system
from lapis.server.control.runs import NewRun
from lapis.server.store.logged import gathered

TRIALS, AT_ONCE, ROUNDS = 50, 2, 3
READ, FEW, MANY = 300, 10, 2000
BARE = "import sys\nlr, wd = map(float, sys.argv[1:])\nprint(-(lr - 0.1) ** 2 - wd ** 2)\n"
TRIAL = """
import sys
from azureml.core import Run
lr, wd = map(float, sys.argv[2::2])
Run.get_context().log("score", -(lr - 0.1) ** 2 - wd ** 2)
"""
TUNE = """
import ctypes, json, os, subprocess, sys, tempfile, time
if os.geteuid() == 0 and not ctypes.CDLL(None).unshare(0x40000000):  # a network of its own: it listens everywhere
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
import ray
from ray import tune

def trial(config):
    tune.report({"score": -(config["lr"] - 0.1) ** 2 - config["wd"] ** 2})

folder = tempfile.mkdtemp(prefix="r")
ray.init("local", _temp_dir=folder, num_cpus=2, include_dashboard=False, log_to_driver=False,
         object_store_memory=200_000_000, logging_level="ERROR", _node_ip_address="127.0.0.1")
trials, rounds, seconds = int(sys.argv[1]), int(sys.argv[2]), []
for number in range(rounds):
    tuner = tune.Tuner(
        trial, param_space={"lr": tune.uniform(0, 1), "wd": tune.uniform(0, 1)},
        tune_config=tune.TuneConfig(num_samples=trials, max_concurrent_trials=2, metric="score", mode="max"),
        run_config=tune.RunConfig(storage_path=os.path.join(folder, f"tune{number}"), verbose=0))
    began = time.perf_counter()
    found = tuner.fit()
    seconds.append((time.perf_counter() - began) / trials)
    assert len(found) == trials and not found.errors
print(json.dumps(seconds))
"""


def measure(options: Options) -> list[Figure]:
    lapis, bare = [], []
    with Home() as home:
        experiment, folder = home.experiment(), home.source(TRIAL)
        Path(folder, "bare.py").write_text(BARE)
        _search(experiment, folder, 4)
        for _ in range(ROUNDS):
            lapis.append(_search(experiment, folder, TRIALS))
            bare.append(_plain(folder))
    readings = [_reading("Lapis", lapis), _reading("bare: python trial.py", bare)]
    if options.peers:
        tune = _ray_tune()
        readings += [Reading("Ray Tune", tune)] if tune else []
    cpus = [Reading(each.system, each.cpu, bare=each.bare) for each in readings if each.cpu]
    what = f"{TRIALS} trivial trials, {AT_ONCE} at a time, time of a trial"
    few, many, read = _controller()
    return [
        Figure(what, "s", readings),
        Figure(f"{TRIALS} trivial trials, {AT_ONCE} at a time, CPU of a trial", "s", cpus, Asked(times_bare=4)),
        Figure(
            f"a trial of a search with {MANY:,} runs, CPU of the controller", "s",
            [Reading("Lapis", many), Reading(f"with {FEW} runs", few, bare=True)], Asked(times_bare=1.5),
        ),
        Figure(f"metrics of {READ} runs of a search, read", "s", [Reading("Lapis", read)], Asked(most=0.5)),
    ]  # fmt: skip


def _reading(system: str, clocks: list[Clock]) -> Reading:
    each = [clock.cpu / TRIALS for clock in clocks]
    return Reading(system, [clock.wall / TRIALS for clock in clocks], each, bare=system.startswith("bare"))


def _search(experiment: Experiment, folder: str, trials: int) -> Clock:
    sampling = RandomParameterSampling({"--lr": uniform(0, 1), "--wd": uniform(0, 1)})
    config = HyperDriveConfig(
        sampling, "score", "maximize", trials, AT_ONCE, run_config=ScriptRunConfig(folder, "train.py")
    )
    with Clock(family_cpu) as clock:
        run = experiment.submit(config)
        run.wait_for_completion()
        assert run.get_best_run_by_primary_metric() is not None
    return clock


def _plain(folder: str) -> Clock:
    def one(_: int) -> float:
        command = [sys.executable, f"{folder}/bare.py", str(random.random()), str(random.random())]
        return float(subprocess.run(command, check=True, capture_output=True).stdout)

    with Clock() as clock, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        max(pool.map(one, range(TRIALS)))
    return clock


def _ray_tune() -> list[float]:
    """Seconds of a trial, a sample for each round; none where Ray cannot be had."""
    python = peers.ray_interpreter()
    if python is None:
        return []
    try:
        quiet = {
            **os.environ,
            "RAY_USAGE_STATS_ENABLED": "0",
            "TQDM_DISABLE": "1",
            "RAY_raylet_start_wait_time_s": "240",
        }
        command = [python, "-W", "ignore", "-c", TUNE, str(TRIALS), "1"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=quiet)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"Without Ray Tune: {error}", file=sys.stderr)
        return []
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _controller() -> tuple[list[float], list[float], list[float]]:
    """CPU seconds of the server's controller from the end of a trial to the start of the next one, early and late in a
    search of many; and seconds of reading the metrics of a search of 300."""
    with Home() as home, _quiet_system(home) as system:
        home.start()
        experiment = home.experiment("controller")
        workspace_id = experiment.workspace._workspace_id
        snapshot_id = experiment.submit(ScriptRunConfig(home.source(TRIAL), "train.py")).get_snapshot_id()
        home.stop()
        every = _drive(system, workspace_id, snapshot_id, "HD_many", MANY)
        _drive(system, workspace_id, snapshot_id, "HD_read", READ)
        system.stores.database.close()
        run = HyperDriveRun(experiment, "HD_read")
        read = []
        for _ in range(7):
            with Clock() as clock:
                assert len(run.get_metrics()) == READ
            read.append(clock.wall)
    few = [statistics.median(every[start : start + FEW]) for start in (FEW, 2 * FEW, 3 * FEW)]
    many = [statistics.median(every[-FEW * back :][:FEW]) for back in (2, 3, 4)]
    return few, many, read


@contextmanager
def _quiet_system(home: Home) -> Iterator[Any]:
    """The parts of a server without its threads: trials end when we say so."""
    os.makedirs(home.settings.home, exist_ok=True)
    yield make_system(home.settings, "http://127.0.0.1:1", time.time, lambda: None)


def _drive(system: Any, workspace_id: str, snapshot_id: str, run_id: str, trials: int) -> list[float]:
    spec = {
        "sampling": {"name": "RANDOM", "parameter_space": {"--lr": ["uniform", [0, 1]]}, "seed": 1},
        "policy": {"name": "Bandit", "properties": {"slack_factor": 0.5}},
        "metric": "score", "goal": "maximize", "max_total": trials, "max_concurrent": AT_ONCE, "max_minutes": 1000,
    }  # fmt: skip
    trial = TrialTemplate(Job(script="train.py"), {"arguments": []})
    new = NewRun("controller", run_id, run_id, "hyperdrive", snapshot_id=snapshot_id, target="local",
                 sweep=Search(spec, trial))  # fmt: skip
    system.control.runs.create(workspace_id, [new])
    system.control.sweeps._one_pass()
    seconds = []
    for number in range(trials):
        child_id = f"{run_id}_{number}"
        for at in range(5):
            point = Point("scalar", 0.0, "score", random.random())
            system.stores.metrics.append(workspace_id, child_id, "journal", at, at + 1, gathered([point]))
        trial = system.stores.runs.get(workspace_id, child_id)
        with Clock() as clock:
            system.control.runs.endings.end(trial, RunState.COMPLETED, "")
            system.control.sweeps._one_pass()
        seconds.append(clock.cpu)
    assert system.stores.runs.get(workspace_id, run_id).state is RunState.COMPLETED
    return seconds


if __name__ == "__main__":
    alone(measure)
