"""Runs in containers, where Docker or Podman answers: the image's Python, packages installed in it, and cancel."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Environment, Experiment, ScriptRunConfig
from azureml.exceptions import UserErrorException
from lapis.environments import containers
from lapis.testing import until
from tests.images import make_python_image
from tests.wheels import make_wheel

Submit = Callable[..., Any]


@pytest.fixture
def image() -> str:
    runtime = containers.runtime()
    if runtime is None:
        pytest.skip("no container runtime answers on this machine")  # a daemon is the machine's, not ours to start
    return make_python_image(runtime)


@pytest.mark.full
def test_a_script_runs_in_the_image_with_metrics_outputs_and_variables(finish: Submit, image: str) -> None:
    code = """
import os, sys
from azureml.core import Run
Run.get_context().log('inside', int(not os.path.exists('/proc/1/root/usr/share')))
with open('outputs/a.txt', 'w') as file: file.write(os.environ['MINE'])
print(sys.prefix)
"""
    environment = Environment.from_docker_image("own", image)
    environment.environment_variables = {"MINE": "yes"}
    run = finish(code, environment=environment)
    assert run.get_status() == "Completed", run.get_details()["error"]
    assert run.get_metrics() == {"inside": 1} and "outputs/a.txt" in run.get_file_names()


@pytest.mark.full
def test_packages_are_installed_for_the_images_python(finish: Submit, image: str, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "lapistoy", "1.0")
    environment = Environment("with-packages")
    environment.docker.base_image = image
    for option in ("--no-index", f"--find-links {tmp_path / 'wheels'}"):
        environment.python.conda_dependencies.set_pip_option(option)
    environment.python.conda_dependencies.add_pip_package("lapistoy")
    run = finish("import lapistoy; print(lapistoy.VERSION)", environment=environment)
    assert run.get_status() == "Completed", run.get_details()["error"]
    assert run.get_logs()["user_logs/std_log.txt"].endswith("1.0\n")


@pytest.mark.full
def test_cancel_leaves_no_container(experiment: Experiment, script: Submit, image: str) -> None:
    environment = Environment.from_docker_image("own", image)
    code = "import time; print('up', flush=True); time.sleep(600)"
    run = experiment.submit(ScriptRunConfig(script(code), script="train.py", environment=environment))
    until(lambda: "up" in run.get_logs().get("user_logs/std_log.txt", ""), seconds=60)
    run.cancel()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Canceled"
    runtime = containers.runtime()
    assert runtime is not None
    listed = subprocess.check_output([runtime, "ps", "--all", "--format", "{{.Names}}"], text=True)
    assert run.id not in listed


def test_an_image_without_a_runtime_is_refused_with_what_to_do(
    experiment: Experiment, script: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = Environment.from_docker_image("own", "somebody/elses:image")
    with pytest.raises(UserErrorException, match="somebody/elses:image"):
        experiment.submit(ScriptRunConfig(script("1"), script="train.py", environment=environment))
    assert list(experiment.get_runs()) == []


def test_docker_enabled_with_azures_own_image_needs_no_container() -> None:
    definition = Environment("old")
    definition.docker.enabled = True
    wanted, ignored = containers.wish(definition._to_dict(), forced=False)
    assert wanted is None and "docker.enabled" in ignored[0]
    assert containers.wish(definition._to_dict(), forced=True)[0] is not None
