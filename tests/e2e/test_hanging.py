"""Runs that do nothing any more: their reason says so, and where each process stands."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.runconfig import PyTorchConfiguration
from lapis.testing import Home, until
from tests.needs import lacking

WAITS = """
import os, sys, time
print("begun", flush=True)

def wait_for_a_friend():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.2)

wait_for_a_friend()
end = time.monotonic() + 3.0
while time.monotonic() < end:
    pass
"""


def patient() -> Environment:
    environment = Environment("patient")
    environment.python.user_managed_dependencies = True
    environment.environment_variables = {"LAPIS_HANG_SECONDS": "2"}
    return environment


def reasons(run: Any) -> list[str]:
    return [stage["reason"] for stage in run._refresh()["stages"]]


def test_a_run_that_does_nothing_says_so_and_says_when_it_goes_on(submit: Callable[..., Any], tmp_path: Path) -> None:
    run = submit(WAITS, arguments=[tmp_path / "friend"], environment=patient())
    until(lambda: any("Nothing was printed, logged or computed for 2 s: it seems to hang." in r for r in reasons(run)))
    (tmp_path / "friend").touch()
    until(lambda: reasons(run)[-1] == "It does something again")
    assert run.wait_for_completion()["status"] == "Completed"


def test_a_run_that_computes_does_not_hang(finish: Callable[..., Any]) -> None:
    code = "import time\nend = time.monotonic() + 5\nwhile time.monotonic() < end:\n    sum(range(1000))\n"
    run = finish(code, environment=patient())
    assert run.get_status() == "Completed"
    assert not any("hang" in reason for reason in reasons(run))


def test_the_stacks_of_every_rank_are_kept_with_the_run(
    home: Home, script: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which("py-spy", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])):
        lacking("py-spy is not installed")
    workspace = Workspace.from_config()
    ComputeTarget.create(workspace, "nodes", AmlCompute.provisioning_configuration(max_nodes=2))
    config = ScriptRunConfig(
        script(WAITS), "train.py", arguments=[tmp_path / "friend"], compute_target="nodes", environment=patient(),
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=4, node_count=2),
    )  # fmt: skip
    run = Experiment(workspace, "trial").submit(config)
    stacks = [f"logs/azureml/stacks_rank_{rank}.txt" for rank in range(4)]
    until(lambda: set(stacks) <= set(run.get_file_names()), seconds=60)
    (tmp_path / "friend").touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert all("wait_for_a_friend" in run._text_of(name) for name in stacks)
    assert any("stacks_rank_0.txt" in reason for reason in reasons(run))
