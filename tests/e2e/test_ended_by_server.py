"""Where the server has to end a run itself, what the script handed over is brought in first, and nobody survives."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, ScriptRunConfig, Workspace
from lapis.machine.processes import started
from lapis.testing import Home, until, until_written

WRITE = """
import os, subprocess, sys, time
from azureml.core import Run
run = Run.get_context()
signs = sys.argv[1]
def write(part):
    for number in range(100):
        run.log(part, number)
        print(part, number)
    open("outputs/" + part, "w").write(part)
    open("logs/" + part, "w").write(part)
    run.log_confusion_matrix(part + "-matrix", {"class_labels": ["a"], "matrix": [[1]]})
child = subprocess.Popen(["sleep", "600"], start_new_session=True, env={})
write("early")
open(os.path.join(signs, "ready"), "w").write(f"{os.getpid()} {child.pid}\\n")
while not os.path.exists(os.path.join(signs, "go")):
    time.sleep(0.02)
write("late")
open(os.path.join(signs, "written"), "w").write("yes\\n")
time.sleep(float(sys.argv[2]))
"""
PARTS = ("early", "late")


@pytest.fixture
def signs(tmp_path: Path) -> Path:
    (tmp_path / "signs").mkdir()
    return tmp_path / "signs"


@pytest.mark.full
def test_cancelling_a_run_whose_agent_hangs_keeps_all_it_wrote_and_leaves_nobody(
    home: Home, script: Callable[..., str], signs: Path
) -> None:
    run, pids = submitted(script, signs, seconds=600)
    job = home.path / "work" / run.id
    agent = agent_of(job)
    os.kill(agent, signal.SIGSTOP)
    (signs / "go").touch()
    until_written(signs / "written")
    run.cancel()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"
    assert [pid for pid in (agent, *pids) if started(pid)] == []
    check_all_is_there(run)
    until(lambda: not job.exists())


def test_a_run_whose_agent_cannot_be_replaced_for_a_while_goes_on(
    home: Home, script: Callable[..., str], signs: Path
) -> None:
    run, (pid, _) = submitted(script, signs, seconds=0)
    job = home.path / "work" / run.id
    agent = agent_of(job)
    os.rename(job / "job.json", job / "kept.json")
    (job / "job.json" / "in the way").mkdir(parents=True)
    os.kill(agent, signal.SIGKILL)
    until(lambda: "could not be minded" in (home.path / "server.log").read_text())
    assert started(pid) and job.exists()
    (signs / "go").touch()
    until_written(signs / "written")
    (job / "job.json" / "in the way").rmdir()
    (job / "job.json").rmdir()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed"
    check_all_is_there(run)
    until(lambda: not job.exists())


@pytest.mark.full
def test_a_run_whose_agents_die_again_and_again_keeps_all_it_wrote_and_leaves_nobody(
    home: Home, script: Callable[..., str], signs: Path
) -> None:
    run, pids = submitted(script, signs, seconds=600)
    job = home.path / "work" / run.id
    (signs / "go").touch()
    until_written(signs / "written")
    for _ in range(10):
        agent = until(lambda: alive(job))
        os.kill(agent, signal.SIGKILL)
        until(lambda: started(agent) is None)  # noqa: B023
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Failed" and "AgentLost" in str(details["error"])
    assert [pid for pid in pids if started(pid)] == []
    check_all_is_there(run)
    until(lambda: not job.exists())


def submitted(script: Callable[..., str], signs: Path, seconds: int) -> tuple[Any, list[int]]:
    config = ScriptRunConfig(script(WRITE), "train.py", arguments=[str(signs), seconds])
    run = Experiment(Workspace.from_config(), "ended").submit(config)
    return run, [int(pid) for pid in until_written(signs / "ready").split()]


def agent_of(job: Path) -> int:
    return int(json.loads((job / "agent.json").read_text())["pid"])


def alive(job: Path) -> int | None:
    """The agent that lives there now."""
    try:
        agent = agent_of(job)
    except (OSError, ValueError):
        return None
    return agent if started(agent) else None


def check_all_is_there(run: Any) -> None:
    metrics, printed = run.get_metrics(), run._text_of("user_logs/std_log.txt")
    for part in PARTS:
        assert metrics[part] == list(range(100))
        assert f"{part}-matrix" in metrics
        assert printed.count(f"{part} ") >= 100
        assert run._text_of(f"outputs/{part}") == run._text_of(f"logs/{part}") == part
