"""A disk without room, or without descriptors left: the verdict is the script's own, and logging never fails for it."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, ScriptRunConfig, Workspace
from lapis.testing import Home, until
from tests.small_disk import SmallDisk, small

__all__ = ["small"]  # the fixture

# Goes on when the test has filled the disk, and leaves a mark on another one before it ends.
WAIT = """
import os, sys, time
from azureml.core import Run
run = Run.get_context()
signs = sys.argv[1]
def told(sign):
    while not os.path.exists(os.path.join(signs, sign)):
        time.sleep(0.02)
def tell(sign):
    open(os.path.join(signs, sign), "w").close()
run.log("before", 1)
tell("ready")
told("full")
"""
MATRIX = '{"class_labels": ["a"], "matrix": [[1]]}'


@pytest.fixture
def signs(tmp_path: Path) -> Path:
    (tmp_path / "signs").mkdir()
    return tmp_path / "signs"


@pytest.mark.parametrize(("code", "status", "reason"), [(0, "Completed", ""), (3, "Failed", "exit code 3")])
def test_a_script_that_ends_on_a_full_disk_has_the_verdict_that_is_its_own(
    code: int, status: str, reason: str, small: tuple[Home, SmallDisk], script: Callable[..., str], signs: Path
) -> None:
    home, disk = small
    run = submitted(script(WAIT + f"tell('ending')\nos._exit({code})\n"), signs)
    until(lambda: (signs / "ready").exists())
    job = home.path / "work" / run.id
    disk.fill()
    (signs / "full").touch()
    until(lambda: (signs / "ending").exists())
    until(lambda: (job / "exit.json").exists(), lambda: os.listdir(job))
    assert run.get_status() in ("Running", "Finalizing"), "nothing is said before it can be kept"
    disk.free()
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == status
    assert reason in str(details.get("error"))
    assert run.get_metrics() == {"before": 1}
    until(lambda: not job.exists())


def test_what_a_script_logs_on_a_full_disk_raises_nothing_and_arrives(
    small: tuple[Home, SmallDisk], script: Callable[..., str], signs: Path
) -> None:
    home, disk = small
    code = (
        WAIT.replace('run.log("before", 1)\n', "")
        + f"for i in range(1000): run.log('x', i)\nrun.log_confusion_matrix('m', {MATRIX})\n"
        "tell('logged')\ntold('room')\nrun.log('x', 1000)\n"
    )
    run = submitted(script(code), signs)
    until(lambda: (signs / "ready").exists())
    disk.fill()
    (signs / "full").touch()
    until(lambda: (signs / "logged").exists())
    disk.free()
    (signs / "room").touch()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed"
    assert run.get_metrics("x")["x"] == list(range(1001))
    assert run.get_metrics("m", populate=True)["m"]["data"]["matrix"] == [[1]]


@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_what_could_not_be_kept_until_the_end_is_told_in_the_verdict(
    end: str, small: tuple[Home, SmallDisk], script: Callable[..., str], signs: Path
) -> None:
    home, disk = small
    patience = "from lapis.client import unwritten\nunwritten.PATIENCE = 0.2\n"
    code = patience + WAIT + f"for i in range(1000): run.log('x', i)\ntell('logged')\n{end}\n"
    run = submitted(script(code), signs)
    until(lambda: (signs / "ready").exists())
    disk.fill()
    (signs / "full").touch()
    until(lambda: (home.path / "work" / run.id / "exit.json").exists())
    disk.free()
    error = run.wait_for_completion(raise_on_error=False)["error"]["error"]
    kept = run.get_metrics("x").get("x", [])  # what went into the last page of the journal
    assert kept == list(range(len(kept))) and len(kept) < 1000
    assert "could not be stored" in error["message"] and "logged on a disk without room" in error["message"]
    if end == "sys.exit(0)":
        assert error["code"] == "NotDelivered" and f"{1000 - len(kept)} things" in error["message"]


def submitted(folder: str, signs: Path) -> Any:
    config = ScriptRunConfig(folder, "train.py", arguments=[str(signs)])
    return Experiment(Workspace.from_config(), "full").submit(config)


def test_an_agent_without_descriptors_looks_after_its_script_again_when_there_are_some(
    home: Home, script: Callable[..., str], signs: Path
) -> None:
    run = submitted(script(WAIT + "for i in range(1000): run.log('x', i)\nprint('said')\nsys.exit(3)\n"), signs)
    until(lambda: (signs / "ready").exists())
    job = home.path / "work" / run.id
    agent = int(json.loads((job / "agent.json").read_text())["pid"])
    soft, hard = resource.prlimit(agent, resource.RLIMIT_NOFILE)
    resource.prlimit(agent, resource.RLIMIT_NOFILE, (0, hard))
    (signs / "full").touch()
    until(lambda: (job / "exit.json").exists())
    until(lambda: "Too many open files" in (job / "agent.log").read_text())
    resource.prlimit(agent, resource.RLIMIT_NOFILE, (soft, hard))
    details = run.wait_for_completion(raise_on_error=False)
    assert "exit code 3" in str(details["error"]) and "said" in run._text_of("user_logs/std_log.txt")
    assert run.get_metrics("x")["x"] == list(range(1000))
    assert not any("another one takes over" in stage["reason"] for stage in details["stages"])


def test_a_script_without_descriptors_logs_all_the_same(finish: Callable[..., Any]) -> None:
    code = """
import resource
from azureml.core import Run
run = Run.get_context()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
for number in range(100):
    run.log("x", number)
run.log_confusion_matrix("m", {"class_labels": ["a"], "matrix": [[1]]})
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
"""
    run = finish(code)
    assert run.get_status() == "Completed"
    assert run.get_metrics("x")["x"] == list(range(100)) and "m" in run.get_metrics()
