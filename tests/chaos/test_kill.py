"""kill -9 of server, agent, script or notebook at random moments: nothing lost or doubled, the verdict right."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.runconfig import PyTorchConfiguration
from azureml.train.hyperdrive import (
    BayesianParameterSampling,
    HyperDriveConfig,
    PrimaryMetricGoal,
    RandomParameterSampling,
    uniform,
)
from lapis.client import local_server
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.runs.run import Run
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home, until

POINTS = 120
# Counts what it has handed over, one number a line: a line here means log() and print() had returned.
SCRIPT = f"""
import os, sys, time
from azureml.core import Run
run = Run.get_context()
done = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in range({POINTS}):
    run.log("number", number)
    print("line", number)
    os.write(done, b"%d\\n" % number)
    time.sleep(0.015)
open("outputs/end.txt", "w").write("written at the end")
"""
QUICK, THOROUGH = range(4), range(4, 30)


def seeds(mark_after: range = THOROUGH) -> list[Any]:
    return [*QUICK, *(pytest.param(seed, marks=pytest.mark.full) for seed in mark_after)]


@pytest.mark.parametrize("seed", seeds())
def test_a_run_survives_the_death_of_its_server_and_its_agent(
    seed: int, home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    run, done = submitted(home, script, tmp_path)
    killer = threading.Thread(target=kill_at_random, args=(chance, home, run.id))
    killer.start()
    details = run.wait_for_completion()
    killer.join()
    assert details["status"] == "Completed", details
    assert run.get_metrics()["number"] == list(range(POINTS))
    assert log_of(run) == [f"line {number}" for number in range(POINTS)]
    assert "outputs/end.txt" in run.get_file_names()
    assert len(done.read_text().split()) == POINTS, "the script itself was never disturbed"


MANY = 60_000
LOGS_ALL_IT_CAN = f"""
from azureml.core import Run
run = Run.get_context()
for number in range({MANY}):
    run.log("loss", number / 2, step=number)
    if number % 3 == 0:
        run.log("whole", number)
    if number % 1000 == 0:
        run.log("text", "t%d" % number)
        run.log_row("row", x=number)
"""


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 8))])
def test_of_a_run_that_logs_all_it_can_every_point_is_there_once_though_its_server_and_its_agent_die(
    seed: int, home: Home, script: Callable[..., str]
) -> None:
    run = Experiment(Workspace.from_config(), "many").submit(ScriptRunConfig(script(LOGS_ALL_IT_CAN), "train.py"))
    killer = threading.Thread(target=kill_at_random, args=(random.Random(seed), home, run.id))
    killer.start()
    run.wait_for_completion()
    killer.join()
    assert run.get_metrics() == {
        "loss": [number / 2 for number in range(MANY)],
        "whole": list(range(0, MANY, 3)),
        "text": [f"t{number}" for number in range(0, MANY, 1000)],
        "row": {"x": list(range(0, MANY, 1000))},
    }


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 15))])
def test_a_run_on_two_nodes_survives_the_death_of_its_server_and_its_agents(
    seed: int, home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    workspace = Workspace.from_config()
    ComputeTarget.create(workspace, "nodes", AmlCompute.provisioning_configuration(max_nodes=2))
    code = SCRIPT.replace("sys.argv[1]", 'sys.argv[1] + os.environ["RANK"]').replace(
        '"number"', '"number-" + os.environ["RANK"]'
    )
    config = ScriptRunConfig(
        script(code), "train.py", arguments=[tmp_path / "done"], compute_target="nodes",
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=4, node_count=2),
    )  # fmt: skip
    run = Experiment(workspace, "chaos").submit(config)
    killer = threading.Thread(target=kill_at_random, args=(chance, home, run.id, ("", "nodes/1")))
    killer.start()
    details = run.wait_for_completion()
    killer.join()
    assert details["status"] == "Completed", details
    for rank in range(4):
        assert run.get_metrics()[f"number-{rank}"] == list(range(POINTS))
        log = run._text_of(f"user_logs/std_log_{rank}.txt").splitlines()
        assert [line for line in log if line.startswith("line ")] == [f"line {number}" for number in range(POINTS)]
        assert len((tmp_path / f"done{rank}").read_text().split()) == POINTS, "no script was ever disturbed"


@pytest.mark.parametrize("seed", seeds(range(4, 12)))
def test_a_killed_script_has_failed_and_keeps_all_it_handed_over(
    seed: int, home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    run, done = submitted(home, script, tmp_path)
    until(lambda: done.exists() and len(done.read_text().split()) > chance.randint(1, 80))
    os.kill(script_process(home, run.id), signal.SIGKILL)
    if chance.random() < 0.5:
        home.kill_server()
    details = run.wait_for_completion(raise_on_error=False)
    handed_over = len(done.read_text().split())
    assert details["status"] == "Failed"
    assert "signal 9 (SIGKILL)" in details["error"]["error"]["message"]
    numbers = run.get_metrics()["number"]
    assert numbers == list(range(len(numbers))), "in order, none doubled"
    assert handed_over <= len(numbers) <= handed_over + 1
    lines = log_of(run)
    assert lines[:handed_over] == [f"line {number}" for number in range(handed_over)]


@pytest.mark.parametrize("seed", seeds(range(4, 12)))
def test_a_killed_notebook_loses_no_point_and_its_run_has_failed(seed: int, home: Home, tmp_path: Path) -> None:
    chance = random.Random(seed)
    done = tmp_path / "done"
    code = f"""
import os
from azureml.core import Workspace, Experiment
run = Experiment(Workspace.from_config(), "interactive").start_logging(run_id="the-run")
done = os.open({str(done)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
number = 0
while True:
    run.log("number", number)
    os.write(done, b"%d\\n" % number)
    number += 1
"""
    notebook = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.DEVNULL)
    wanted = chance.randint(1, 5000)
    until(lambda: done.exists() and done.stat().st_size > wanted)
    if chance.random() < 0.5:
        home.kill_server()
    notebook.kill()
    notebook.wait()
    run = Run.get(Workspace.from_config(), "the-run")
    details = run.wait_for_completion(raise_on_error=False)
    handed_over = len(done.read_text().split())
    assert details["status"] == "Failed"
    assert "ended without completing" in details["error"]["error"]["message"]
    numbers = run.get_metrics()["number"]
    assert numbers == list(range(len(numbers)))
    assert handed_over <= len(numbers) <= handed_over + 1


def test_a_run_ends_and_keeps_everything_while_no_server_is_there(
    home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    run, done = submitted(home, script, tmp_path)
    until(lambda: done.exists())
    home.kill_server()
    until(lambda: len(done.read_text().split()) == POINTS)
    assert home.server_pid is None
    run = Run.get(Workspace.from_config(), run.id)  # asking starts a server, which finds the run again
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics()["number"] == list(range(POINTS))
    assert log_of(run) == [f"line {number}" for number in range(POINTS)]


def test_when_agent_keeper_and_server_die_together_the_verdict_is_honest(
    home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    run, done = submitted(home, script, tmp_path)
    until(lambda: done.exists())
    job = home.path / "work" / run.id
    process = json.loads((job / "process.json").read_text())
    agent = json.loads((job / "agent.json").read_text())
    home.kill_server()
    for pid in (agent["pid"], process["keeper"]["pid"]):
        os.kill(pid, signal.SIGKILL)
    details = Run.get(Workspace.from_config(), run.id).wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed"
    assert "nobody saw its exit status" in details["error"]["error"]["message"]
    assert run.get_metrics()["number"] == list(range(POINTS)), "the script ran to its end, and all of it is here"


TRIALS = 8
SEARCHED = """
import os, sys, time
from azureml.core import Run
done = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(done, (Run.get_context().id + "\\n").encode())
for step in range(10):
    Run.get_context().log("x", float(sys.argv[3]) + step)
    time.sleep(0.02)
"""


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 12))])
def test_a_search_survives_the_death_of_its_server_and_repeats_or_loses_no_trial(
    seed: int, home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    done, quiet = tmp_path / "done", threading.Event()
    sampling = [RandomParameterSampling, BayesianParameterSampling][seed % 2]({"x": uniform(0, 1)})
    config = HyperDriveConfig(
        sampling, "x", PrimaryMetricGoal.MAXIMIZE, TRIALS, 2,
        run_config=ScriptRunConfig(script(SEARCHED), "train.py", arguments=[done]),
    )  # fmt: skip
    run = Experiment(Workspace.from_config(), "chaos").submit(config)

    def kill() -> None:
        for _ in range(4):
            quiet.wait(chance.uniform(0.05, 0.9))
            if not quiet.is_set() and home.server_pid is not None:
                home.kill_server()

    killer = threading.Thread(target=kill)
    killer.start()
    details = run.wait_for_completion()
    quiet.set()
    killer.join()
    assert details["status"] == "Completed", details
    expected = sorted(f"{run.id}_{number}" for number in range(TRIALS))
    assert sorted(done.read_text().split()) == expected, "each script ran once"
    assert sorted(child.id for child in run.get_children()) == expected
    metrics = run.get_metrics()
    assert all(len(metrics[child_id]["x"]) == 10 for child_id in expected)
    best = max(expected, key=lambda child_id: metrics[child_id]["x"][-1])
    assert details["properties"]["best_child_run_id"] == best
    log = run._text_of("azureml-logs/hyperdrive.txt")
    assert all(log.count(f"Started {child_id}:") <= 1 for child_id in expected)


@pytest.mark.parametrize("server_too", [False, True])
def test_what_an_agent_left_that_was_killed_after_its_last_word_is_removed(
    server_too: bool, home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    many = "import os\nos.mkdir('many')\nfor number in range(20000): open(f'many/{number}', 'w').close()\n"
    for _ in range(5):  # the moment between its last word and its end may be missed
        run, _ = submitted(home, script, tmp_path, many)
        job = home.path / "work" / run.id
        until(lambda: (job / "process.json").exists())  # noqa: B023
        agent = json.loads((job / "agent.json").read_text())["pid"]
        until(lambda: run.get_status() == "Completed")  # noqa: B023
        os.kill(agent, signal.SIGSTOP)
        if job.exists():
            break
    else:
        pytest.fail("the agent was always quicker")
    if server_too:
        home.kill_server()
    os.kill(agent, signal.SIGKILL)
    assert Run.get(Workspace.from_config(), run.id).get_status() == "Completed"
    until(lambda: not job.exists())


@pytest.mark.full
def test_a_server_that_is_away_for_a_minute_is_not_noticed_by_the_script(
    home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    code = SCRIPT.replace("time.sleep(0.015)", "time.sleep(0.6)")
    run, done = submitted(home, script, tmp_path, code)
    until(lambda: done.exists())
    pid = home.server_pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)  # it takes connections and answers nothing
    time.sleep(60)
    os.kill(pid, signal.SIGCONT)
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics()["number"] == list(range(POINTS))
    assert log_of(run) == [f"line {number}" for number in range(POINTS)]


def submitted(home: Home, script: Callable[..., str], tmp_path: Path, code: str = SCRIPT) -> tuple[Run, Path]:
    done = tmp_path / "done"
    source = ScriptRunConfig(script(code), "train.py", arguments=[done])
    return Experiment(Workspace.from_config(), "chaos").submit(source), done


def kill_at_random(chance: random.Random, home: Home, run_id: str, nodes: Sequence[str] = ("",)) -> None:
    """One to four deaths, each at a moment of its own. The waiting client starts the next server."""
    for _ in range(chance.randint(1, 4)):
        time.sleep(chance.uniform(0.0, 0.9))
        victim = chance.choice(["server", "agent", "both"])
        if victim in ("agent", "both"):
            kill_agent(home, run_id, chance.choice(nodes))
        if victim in ("server", "both") and home.server_pid is not None:
            home.kill_server()


def kill_agent(home: Home, run_id: str, node: str = "") -> None:
    try:
        agent = json.loads((home.path / "work" / run_id / node / "agent.json").read_text())
        os.kill(agent["pid"], signal.SIGKILL)
    except (OSError, ValueError):
        pass  # it has not begun, or has ended: nothing to kill


def script_process(home: Home, run_id: str) -> int:
    return int(json.loads((home.path / "work" / run_id / "process.json").read_text())["script"]["pid"])


def log_of(run: Run) -> list[str]:
    return [line for line in run._text_of("user_logs/std_log.txt").splitlines() if line.startswith("line ")]


def test_two_that_start_a_server_at_once_both_work_on_one(home: Home, tmp_path: Path) -> None:
    code = "from azureml.core import Workspace; print(Workspace.from_config().get_details()['server'])"
    starters = [
        subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(4)
    ]
    addresses = {starter.communicate(timeout=60)[0] for starter in starters}
    assert [starter.returncode for starter in starters] == [0] * 4
    assert len(addresses) == 1
    assert local_server.running(home.settings) is not None
