"""A run in an environment of its own: resolved before it is accepted, built once, told as it happens."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Experiment, ScriptRunConfig, Workspace
from azureml.core.runconfig import RunConfiguration
from azureml.exceptions import ActivityFailedException, UserErrorException
from lapis.environments.turns import ready
from lapis.sdk.environments.environment_resolution import resolve
from lapis.testing import Home, until
from tests.wheels import environment_of, make_wheel

Submit = Callable[..., Any]
BUILD_LOG = "azureml-logs/20_image_build_log.txt"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "lapistoy", "1.0", requires=("lapishelper>=2",))
    make_wheel(folder, "lapistoy", "2.0")
    make_wheel(folder, "lapishelper", "2.1")
    return folder


def test_a_script_sees_the_packages_of_its_environment_and_no_others(finish: Submit, wheels: Path) -> None:
    code = (
        "import lapistoy, lapishelper, sys; print(lapistoy.VERSION, lapishelper.VERSION, sys.prefix != sys.base_prefix)"
    )
    run = finish(code, environment=environment_of(wheels, "lapistoy==1.0"))
    assert run.get_logs()["user_logs/std_log.txt"].splitlines()[-1] == "1.0 2.1 True"
    run = finish("import starlette", environment=environment_of(wheels, "lapistoy==1.0"))
    assert "No module named 'starlette'" in run.get_details()["error"]["error"]["message"]


def test_what_a_run_does_to_its_environment_is_not_there_for_the_next(finish: Submit, wheels: Path) -> None:
    spoil = (
        "import lapistoy, os, sys; os.chmod(lapistoy.__file__, 0o600)\n"
        "open(lapistoy.__file__, 'a').write('VERSION = 666'); print(sys.prefix)"
    )
    made = environment_of(wheels, "lapistoy==2.0", "lapishelper")
    folder = finish(spoil, environment=made).get_logs()["user_logs/std_log.txt"].splitlines()[-1]
    until(lambda: not ready(folder))  # looked at once the run has its verdict
    run = finish("import lapistoy; print(lapistoy.VERSION)", environment=made)
    assert run.get_logs()["user_logs/std_log.txt"].splitlines()[-1] == "2.0"


def test_azureml_is_there_in_every_environment(finish: Submit, wheels: Path) -> None:
    run = finish(
        "from azureml.core import Run; Run.get_context().log('one', 1)", environment=environment_of(wheels, "lapistoy")
    )
    assert run.get_metrics() == {"one": 1}


def test_a_table_for_an_environment_that_cannot_read_it_is_refused_at_submit(
    experiment: Experiment, workspace: Workspace, wheels: Path, script: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    store = workspace.get_default_datastore()
    store.upload_files([str(tmp_path / "rows.csv")])
    table = Dataset.Tabular.from_delimited_files((store, "rows.csv"))
    made = environment_of(wheels, "lapistoy==1.0")
    config = ScriptRunConfig(script("print(1)"), "train.py", arguments=[table.as_named_input("rows")], environment=made)
    with pytest.raises(UserErrorException, match="'rows'.* environment 'toy' has no pandas and no pyarrow"):
        experiment.submit(config)
    assert list(experiment.get_runs()) == []
    make_wheel(wheels, "pandas", "1.0")
    make_wheel(wheels, "pyarrow", "1.0")
    for package in ("pandas", "pyarrow"):
        made.python.conda_dependencies.add_pip_package(package)
    run: Any = experiment.submit(config)
    run.wait_for_completion()


@pytest.mark.parametrize(("asked", "becomes"), [("2.7", "python=3.7"), ("3.15", "python=3.1")])
def test_a_python_that_is_not_there_is_told_at_submit(
    asked: str, becomes: str, experiment: Experiment, wheels: Path, script: Submit, capsys: pytest.CaptureFixture[str]
) -> None:
    made = environment_of(wheels, "lapistoy==2.0")
    made.python.conda_dependencies.set_python_version(asked)
    run = experiment.submit(ScriptRunConfig(script("print(1)"), "train.py", environment=made))
    assert f"Lapis: environment 'toy': python={asked} -> {becomes}" in capsys.readouterr().err
    run.cancel()


def test_the_build_log_and_the_lock_stay_with_the_run(finish: Submit, wheels: Path, tmp_path: Path) -> None:
    made = environment_of(wheels, "lapistoy==1.0")
    first, second = (finish("print(1)", environment=made) for _ in range(2))
    told = first.get_logs()[BUILD_LOG]
    assert "Environment 'toy': Python 3." in told and "2 packages" in told
    assert "nothing to do" not in told and "nothing to do" in second.get_logs()[BUILD_LOG]
    second.download_file("azureml-logs/environment.lock.txt", str(tmp_path / "lock.txt"))
    assert "lapishelper==2.1" in (tmp_path / "lock.txt").read_text()


def test_an_environment_without_a_name_is_told_of_as_that_of_the_run(finish: Submit, wheels: Path) -> None:
    run_config = RunConfiguration()
    run_config.environment.python.conda_dependencies = environment_of(wheels, "lapistoy==1.0").python.conda_dependencies
    run = finish("print(1)", run_config=run_config)
    assert "The environment of this run: Python 3." in run.get_logs()[BUILD_LOG]
    assert "the environment of this run" in str([stage["reason"] for stage in run.get_details()["stages"]])


def test_requirements_that_contradict_each_other_are_refused_before_a_run_is_made(
    experiment: Experiment, script: Submit, wheels: Path
) -> None:
    config = ScriptRunConfig(script("1"), script="train.py")
    config.run_config.environment = environment_of(wheels, "lapistoy==1.0", "lapishelper==1.0")
    with pytest.raises(UserErrorException, match="lapishelper"):
        experiment.submit(config)
    assert list(experiment.get_runs()) == []


def test_a_package_that_nobody_has_is_named(experiment: Experiment, script: Submit, wheels: Path) -> None:
    config = ScriptRunConfig(script("1"), script="train.py")
    config.run_config.environment = environment_of(wheels, "lapis-no-such-package")
    with pytest.raises(UserErrorException, match="lapis-no-such-package"):
        experiment.submit(config)


def test_nothing_is_built_when_runs_take_the_python_of_the_host(
    finish: Submit, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_ENVIRONMENTS", "host")
    run = finish("import sys; print(sys.executable)", environment=environment_of(wheels, "lapistoy"))
    assert run.get_logs()["user_logs/std_log.txt"].splitlines()[-1] == sys.executable


def test_runs_that_ask_at_once_share_one_build(experiment: Experiment, script: Submit, wheels: Path) -> None:
    make_wheel(wheels, "lapisonce", "1.0")
    folder = script("import lapisonce, sys; print(sys.prefix)")
    made = environment_of(wheels, "lapisonce", name="once")
    runs = [experiment.submit(ScriptRunConfig(folder, script="train.py", environment=made)) for _ in range(6)]
    for run in runs:
        run.wait_for_completion()
    assert len({run.get_logs()["user_logs/std_log.txt"] for run in runs}) == 1


def test_a_build_survives_the_server_that_began_it(home: Home, script: Submit, wheels: Path) -> None:
    """The run is Preparing when its server is killed; the next one builds to the end and runs it."""
    make_wheel(wheels, "lapislate", "1.0")
    home.start()
    experiment = Experiment(Workspace.from_config(), "late")
    made = environment_of(wheels, "lapislate")
    run = experiment.submit(ScriptRunConfig(script("import lapislate"), script="train.py", environment=made))
    home.kill_server()
    assert run.wait_for_completion()["status"] == "Completed"


def test_a_build_that_fails_fails_the_run_and_says_why(
    on_shared_server: Home, experiment: Experiment, script: Submit, wheels: Path
) -> None:
    gone = make_wheel(wheels, "lapisbroken", "1.0")
    made = environment_of(wheels, "lapisbroken")
    config = ScriptRunConfig(script("1"), script="train.py", environment=made)
    resolve(experiment.workspace, made)
    gone.unlink()
    shutil.rmtree(on_shared_server.path / "cache" / "uv")
    run = experiment.submit(config)
    with pytest.raises(ActivityFailedException, match="lapisbroken"):
        run.wait_for_completion()
    assert run.get_details()["error"]["error"]["code"] == "EnvironmentBuildFailed"
    assert "lapisbroken" in run.get_logs()[BUILD_LOG]
    make_wheel(wheels, "lapisbroken", "1.0")
    assert experiment.submit(config).wait_for_completion()["status"] == "Completed"


def test_the_build_log_is_streamed_while_the_run_prepares(
    experiment: Experiment, script: Submit, wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_wheel(wheels, "lapisshown", "1.0")
    made = environment_of(wheels, "lapisshown", name="shown")
    run = experiment.submit(ScriptRunConfig(script("print('first line')"), script="train.py", environment=made))
    run.wait_for_completion(show_output=True)
    shown = capsys.readouterr().out
    assert (
        shown.index(f"Streaming {BUILD_LOG}")
        < shown.index("Streaming user_logs/std_log.txt")
        < shown.index("first line")
    )
