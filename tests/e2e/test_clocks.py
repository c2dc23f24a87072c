"""The time of day jumps under a server, its agents and scripts: nothing ends earlier, or is noticed later, for that."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from lapis.testing import Home, until, until_written
from tests.needs import need

SOURCE = Path(__file__).parents[1] / "data" / "shifted_clock.c"
HOUR, DAY = 3600, 24 * 3600
Jump = Callable[[int], None]


@pytest.fixture
def jump(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jump:
    """`jump(HOUR)` sets the time of day of all that the home's server is, and starts. Nothing else jumps."""
    need("gcc", "gcc")
    shift, library = tmp_path / "shift", tmp_path / "shifted_clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
    shift.write_bytes(struct.pack("q", 0))
    with monkeypatch.context() as for_server:
        for_server.setenv("LD_PRELOAD", str(library))
        for_server.setenv("SHIFTED_CLOCK", str(shift))
        home.start()

    def by(seconds: int) -> None:
        with open(shift, "r+b") as file:
            file.write(struct.pack("q", seconds))

    return by


@pytest.fixture
def submit(jump: Jump, script: Callable[..., str]) -> Callable[..., Any]:
    def go(code: str, **more: Any) -> Any:
        config = ScriptRunConfig(script(code), script="train.py", **more)
        return Experiment(Workspace.from_config(), "clocks").submit(config)

    return go


WAIT = """
import os, sys, time
open(sys.argv[1], "w").write("begun\\n")
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
print(int(time.time()))
"""


def test_the_time_of_a_run_is_not_up_because_the_clock_jumped(jump: Jump, submit: Any, tmp_path: Path) -> None:
    run = submit(WAIT, arguments=[tmp_path / "begun", tmp_path / "go"], max_run_duration_seconds=3600)
    until_written(tmp_path / "begun")
    jump(DAY)
    until(lambda: any(stage["state"] == "Running" for stage in run.get_details()["stages"]))
    seen = run.get_status()
    (tmp_path / "go").touch()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed", run.get_details()
    assert seen == "Running"
    printed = int(run.get_logs()["user_logs/std_log.txt"])
    assert printed - time.time() > 80_000  # it did jump


def test_the_time_of_a_run_is_up_though_the_clock_went_back(jump: Jump, submit: Any, tmp_path: Path) -> None:
    run = submit(WAIT, arguments=[tmp_path / "begun", tmp_path / "go"], max_run_duration_seconds=3)
    until_written(tmp_path / "begun")
    jump(-HOUR)
    until(lambda: run.get_status() == "Canceled", run.get_status)


def test_a_cancelled_script_has_its_time_though_the_clock_jumps(jump: Jump, submit: Any, tmp_path: Path) -> None:
    run = submit(
        _SAVES,
        arguments=[tmp_path / name for name in ("begun", "saving", "jumped")],
    )
    until_written(tmp_path / "begun")
    run.cancel()
    until_written(tmp_path / "saving")
    jump(HOUR)
    (tmp_path / "jumped").touch()
    details = run.wait_for_completion(raise_on_error=False)
    assert details["status"] == "Canceled" and "killed" not in details["stages"][-1]["reason"]
    assert "outputs/saved" in run.get_file_names()


_SAVES = """
import os, signal, sys, time
def save(*_):
    open(sys.argv[2], "w").write("saving\\n")
    while not os.path.exists(sys.argv[3]):
        time.sleep(0.02)
    time.sleep(2.5)  # the reconciler looks each second
    open("outputs/saved", "w").write("all of it")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open(sys.argv[1], "w").write("begun\\n")
time.sleep(600)
"""

NOTEBOOK = """
import sys, time
from azureml.core import Experiment, Workspace
run = Experiment(Workspace.from_config(), "clocks").start_logging()
run.log("loss", 1.0)
print(run.id, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("when", [-HOUR, HOUR])
def test_a_notebook_that_dies_is_noticed_whatever_the_clock_says(
    jump: Jump, home: Home, when: int, tmp_path: Path
) -> None:
    notebook = subprocess.Popen([sys.executable, "-c", NOTEBOOK], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert notebook.stdout is not None
    run_id = notebook.stdout.readline().strip()
    run = Run.get(Workspace.from_config(), run_id)
    assert run.get_status() == "Running"
    jump(when)
    assert run.get_status() == "Running"
    os.kill(notebook.pid, signal.SIGKILL)
    notebook.wait()
    notebook.stdout.close()
    until(lambda: run.get_status() == "Failed", lambda: run.get_status())
    assert run.get_metrics() == {"loss": 1.0}
