"""Environments of a workspace: versions, labels, builds by hand, and files that no index has."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from azureml.core import Environment, Experiment, RunConfiguration, ScriptRunConfig, Workspace
from azureml.core.environment import DockerBuildContext, EnvironmentReference
from azureml.exceptions import ActivityFailedException, UserErrorException
from lapis.errors import Conflict, NotFound
from lapis.testing import Home
from tests.wheels import environment_of, make_wheel


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "lapistoy", "1.0")
    return folder


# -- registered


def test_a_registered_environment_is_found_again_as_it_was(workspace: Workspace) -> None:
    mine = Environment("mine")
    mine.python.conda_dependencies.add_pip_package("numpy==1.23.5")
    mine.environment_variables = {"A": "1"}
    mine.docker.base_image_registry.password = "sesame"
    registered = mine.register(workspace)
    assert (registered.name, registered.version) == ("mine", "1")
    assert mine.version is None
    found = Environment.get(workspace, "mine")
    assert found == registered
    assert found.environment_variables == {"A": "1"}
    assert found.docker.base_image_registry.password.startswith("lapis-sealed:"), "it works as it is, and tells nothing"
    assert isinstance(found, Environment)


def test_a_change_makes_the_next_version_and_no_change_makes_none(workspace: Workspace) -> None:
    mine = Environment("mine")
    assert [mine.register(workspace).version for _ in range(2)] == ["1", "1"]
    mine.python.conda_dependencies.add_pip_package("numpy")
    assert mine.register(workspace).version == "2"
    assert Environment.get(workspace, "mine").version == "2"
    first = Environment.get(workspace, "mine", version="1")
    assert first.python.conda_dependencies.pip_packages == ["azureml-defaults"]
    assert Environment.get(workspace, "mine", version=1).version == "1"  # type: ignore[arg-type]


def test_what_was_got_may_be_changed_and_registered_again(workspace: Workspace) -> None:
    Environment("mine").register(workspace)
    found = Environment.get(workspace, "mine")
    found.python.conda_dependencies.add_pip_package("numpy")
    found.version = None
    assert found.register(workspace).version == "2"
    other = found.clone("other").register(workspace)
    assert (other.name, other.version) == ("other", "1")


def test_labels_lead_to_versions_and_move(workspace: Workspace) -> None:
    mine = Environment("mine")
    mine.register(workspace)
    mine.python.conda_dependencies.add_pip_package("numpy")
    mine.register(workspace)
    Environment.label(workspace, "mine", "1", ["production", "tested"])
    assert Environment.get(workspace, "mine", label="production").version == "1"
    Environment.label(workspace, "mine", "2", ["production"])
    assert Environment.get(workspace, "mine", label="production").version == "2"
    assert Environment.get(workspace, "mine", label="tested").version == "1"
    assert Environment.get(workspace, "mine", label="latest").version == "2"


def test_what_is_not_there_is_named_with_what_is(workspace: Workspace) -> None:
    Environment("mine").register(workspace)
    with pytest.raises(NotFound, match="Environment 'mein' could not be found.*Registered: mine"):
        Environment.get(workspace, "mein")
    with pytest.raises(NotFound, match="no version 7. Known versions: 1"):
        Environment.get(workspace, "mine", version="7")
    with pytest.raises(NotFound, match="'best'"):
        Environment.get(workspace, "mine", label="best")
    with pytest.raises(NotFound, match="no version 7"):
        Environment.label(workspace, "mine", "7", ["best"])


def test_what_cannot_be_right_is_refused_before_anything_is_sent(workspace: Workspace) -> None:
    with pytest.raises(UserErrorException, match="names that begin with AzureML are kept"):
        Environment("azureml-Mine").register(workspace)
    with pytest.raises(UserErrorException, match="has no name"):
        RunConfiguration().environment.register(workspace)
    with pytest.raises(UserErrorException, match="a version or a label, not both"):
        Environment.get(workspace, "mine", version="1", label="latest")
    with pytest.raises(UserErrorException, match="cannot be 'a/b'"):
        Environment.get(workspace, "a/b")
    with pytest.raises(UserErrorException, match="labels must be a list"):
        Environment.label(workspace, "mine", "1", "best")


def test_the_newest_of_each_is_listed(workspace: Workspace) -> None:
    mine = Environment("mine")
    mine.register(workspace)
    mine.python.conda_dependencies.add_pip_package("numpy")
    mine.register(workspace)
    Environment("other").register(workspace)
    listed = Environment.list(workspace)
    assert (listed["mine"].version, listed["other"].version) == ("2", "1")
    assert workspace.environments.keys() == listed.keys()


# -- in runs


def test_a_run_may_name_its_environment(
    experiment: Experiment, script: Callable[..., str], wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = environment_of(wheels, "lapistoy")
    mine.environment_variables = {"MINE": "1"}
    mine.register(experiment.workspace)
    config = RunConfiguration()
    config.environment = EnvironmentReference("toy", "1")
    code = "import lapistoy, os; print(lapistoy.VERSION, os.environ['MINE'])"
    run = experiment.submit(ScriptRunConfig(script(code), "train.py", run_config=config))
    run.wait_for_completion()
    assert run.get_logs()["user_logs/std_log.txt"].splitlines()[-1] == "1.0 1"
    assert run.get_environment() == EnvironmentReference("toy").get_environment(experiment.workspace)


def test_a_run_tells_which_environment_it_had(experiment: Experiment, script: Callable[..., str]) -> None:
    mine = Environment("mine")
    mine.environment_variables = {"A": "1"}
    mine.docker.base_image_registry.username = "me"
    mine.docker.base_image_registry.password = "sesame"
    run = experiment.submit(ScriptRunConfig(script("1"), "train.py", environment=mine))
    run.wait_for_completion()
    had = run.get_environment()
    assert type(had) is Environment
    assert (had.name, had.environment_variables) == ("mine", {"A": "1"})
    assert had.docker.base_image_registry.password is None
    with experiment.start_logging() as interactive:
        with pytest.raises(UserErrorException, match="was not submitted"):
            interactive.get_environment()


# -- built by hand


def test_a_build_can_be_waited_for_with_its_log(
    workspace: Workspace, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_wheel(wheels, "lapisbyhand", "1.0")
    mine = environment_of(wheels, "lapisbyhand")
    before = mine.get_image_details(workspace)
    assert not before.image_exist
    build = mine.build(workspace)
    assert build.wait_for_completion(show_output=True) is build
    assert build.status == "Succeeded"
    shown = capsys.readouterr().out
    assert build.get_log() in shown and "Building environment" in shown
    assert shown.endswith("Image Build Status: Succeeded\n")
    details = mine.get_image_details(workspace)
    assert details.image_exist
    assert details.repository == before.repository == f"azureml/azureml_{build.build_id}"
    assert os.path.exists(details.interpreter_path)


def test_building_again_is_done_at_once_and_local_builds_are_the_same(
    workspace: Workspace, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = environment_of(wheels, "lapistoy")
    log = mine.build_local(workspace, useDocker=False)
    assert log in capsys.readouterr().out
    assert mine.build(workspace).status == "Succeeded"
    mine.build(workspace).wait_for_completion(show_output=False)
    assert capsys.readouterr().out == ""


def test_a_build_that_fails_says_why(
    on_shared_server: Home, workspace: Workspace, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = make_wheel(wheels, "lapisgone", "1.0")
    mine = environment_of(wheels, "lapisgone")
    mine.get_image_details(workspace)  # resolved
    gone.unlink()
    shutil.rmtree(on_shared_server.path / "cache" / "uv", ignore_errors=True)
    build = mine.build(workspace)
    with pytest.raises(ActivityFailedException, match="lapisgone"):
        build.wait_for_completion()
    assert build.status == "Failed"
    assert "lapisgone" in build.get_log()


def test_what_does_not_fit_together_is_refused_before_it_is_built(workspace: Workspace, wheels: Path) -> None:
    with pytest.raises(UserErrorException, match="lapis-nowhere"):
        environment_of(wheels, "lapis-nowhere").build(workspace)


def test_an_interpreter_that_the_user_manages_is_not_built(workspace: Workspace) -> None:
    mine = Environment("mine")
    mine.python.user_managed_dependencies = True
    with pytest.raises(UserErrorException, match="nothing to build for environment 'mine'"):
        mine.build(workspace)


# -- files that no index has


def test_a_wheel_of_ones_own_is_installed_from_the_workspace(
    experiment: Experiment, script: Callable[..., str], tmp_path: Path
) -> None:
    workspace = experiment.workspace
    wheel = make_wheel(tmp_path / "mine", "lapisprivate", "1.0", code="ANSWER = 42")
    address = Environment.add_private_pip_wheel(workspace, str(wheel))
    wheel.unlink()
    mine = Environment("private")
    mine.python.conda_dependencies.set_pip_option("--no-index")
    mine.python.conda_dependencies.add_pip_package(address)
    code = "import lapisprivate; print(lapisprivate.ANSWER)"
    run = experiment.submit(ScriptRunConfig(script(code), "train.py", environment=mine))
    run.wait_for_completion()
    assert run.get_logs()["user_logs/std_log.txt"].splitlines()[-1] == "42"


def test_a_wheel_of_the_same_name_needs_a_word_and_never_changes_what_is_there(
    workspace: Workspace, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path, "lapisprivate", "1.0")
    first = Environment.add_private_pip_wheel(workspace, str(wheel))
    with pytest.raises(Conflict, match="exist_ok=True"):
        Environment.add_private_pip_wheel(workspace, str(wheel))
    assert Environment.add_private_pip_wheel(workspace, str(wheel), exist_ok=True) == first
    before = Path(url2pathname(urlsplit(first).path)).read_bytes()
    make_wheel(tmp_path, "lapisprivate", "1.0", code="ANSWER = 43")
    assert Environment.add_private_pip_wheel(workspace, str(wheel), exist_ok=True) != first
    assert Path(url2pathname(urlsplit(first).path)).read_bytes() == before


def test_only_wheels_are_taken_for_wheels(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="There is no wheel"):
        Environment.add_private_pip_wheel(workspace, str(tmp_path / "gone-1.0-py3-none-any.whl"))
    (tmp_path / "mine.whl").write_text("")
    with pytest.raises(UserErrorException, match="Pip would refuse mine.whl"):
        Environment.add_private_pip_wheel(workspace, str(tmp_path / "mine.whl"))


def test_a_folder_with_a_dockerfile_is_kept_in_the_workspace(workspace: Workspace, tmp_path: Path) -> None:
    folder: Any = tmp_path / "image"
    (folder / "sub").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY sub sub\n")
    (folder / "sub" / "file.txt").write_text("A")
    context = DockerBuildContext.from_local_directory(workspace, str(folder))
    assert (context.location_type, context.dockerfile_path) == ("storageAccount", "Dockerfile")
    kept = Path(url2pathname(urlsplit(context.location).path))
    assert (kept / "sub" / "file.txt").read_text() == "A"
    assert DockerBuildContext.from_local_directory(workspace, str(folder)) == context
    registered = Environment.from_docker_build_context("image", context).register(workspace)
    assert registered.docker.build_context == context
    with pytest.raises(UserErrorException, match="no Containerfile in"):
        DockerBuildContext.from_local_directory(workspace, str(folder), "Containerfile")
