"""Bad input: the right class, a message that says what, which and what now, and nothing stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Environment, Experiment, Run, RunConfiguration, ScriptRunConfig, Workspace
from azureml.core.runconfig import MpiConfiguration
from azureml.exceptions import (
    AzureMLException,
    ComputeTargetException,
    ExperimentExecutionException,
    UserErrorException,
)

Submit = Callable[..., Any]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)")
    (folder / "evaluate.py").write_text("print(2)")
    return folder


@pytest.fixture(autouse=True)
def nothing_is_stored(workspace: Workspace) -> Iterator[None]:
    """Each of these is refused before anything changes."""
    yield
    experiments = workspace.experiments
    assert [run for experiment in experiments.values() for run in experiment.get_runs(include_children=True)] == []
    assert set(experiments) <= {"trial"}


def message_of(caught: Any) -> str:
    text: str = caught.value.message
    assert type(caught.value).__module__ in ("azureml.exceptions", "lapis.errors")
    return text


# -- what to run


def test_a_script_that_is_missing_is_told_with_those_that_are_there(experiment: Experiment, source: Path) -> None:
    with pytest.raises(UserErrorException) as caught:
        experiment.submit(ScriptRunConfig(source, script="trian.py"))
    assert (
        message_of(caught) == f"There is no script 'trian.py' in {source}. Python files there: evaluate.py, train.py."
    )


@pytest.mark.parametrize("script", ["../outside.py", "/etc/passwd", "sub/../../outside.py"])
def test_a_script_outside_the_folder_is_refused(experiment: Experiment, source: Path, script: str) -> None:
    (source.parent / "outside.py").write_text("print('stolen')")
    with pytest.raises(UserErrorException, match="outside source_directory"):
        experiment.submit(ScriptRunConfig(source, script=script))


def test_a_script_that_is_a_link_out_of_the_folder_is_refused(experiment: Experiment, source: Path) -> None:
    (source.parent / "outside.py").write_text("print('stolen')")
    os.symlink(source.parent / "outside.py", source / "link.py")
    with pytest.raises(UserErrorException, match="'?link.py'?"):
        experiment.submit(ScriptRunConfig(source, script="link.py"))


def test_a_script_that_is_ignored_is_told(experiment: Experiment, source: Path) -> None:
    (source / ".amlignore").write_text("train.py\n")
    with pytest.raises(UserErrorException, match="'train.py'.*amlignore"):
        experiment.submit(ScriptRunConfig(source, script="train.py"))


def test_a_folder_that_is_none_is_told(experiment: Experiment, source: Path) -> None:
    for folder in (source / "nowhere", source / "train.py"):
        with pytest.raises(UserErrorException, match=f"source_directory {folder} is not a folder"):
            experiment.submit(ScriptRunConfig(folder, script="train.py"))


def test_nothing_to_run_is_told(experiment: Experiment, source: Path) -> None:
    with pytest.raises(UserErrorException, match="script or a command"):
        experiment.submit(ScriptRunConfig(source))


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"script": "train.py", "command": "ls"}, "either script or command"),
        ({"command": "ls", "arguments": ["-l"]}, "part of the command"),
        ({"script": 5}, "script must be"),
        ({"script": "train.py", "arguments": "--lr 1"}, "arguments must be a list"),
        ({"script": "train.py", "arguments": {"--lr": 1}}, "arguments must be a list"),
        ({"script": "train.py", "arguments": 5}, "arguments must be a list"),
        ({"command": 5}, "command must be text or a list"),
        ({"command": []}, "command must be text or a list"),
        ({"command": ""}, "command must be text or a list"),
        ({"script": "train.py", "run_config": {"target": "local"}}, "run_config must be a RunConfiguration, not dict"),
        ({"script": "train.py", "environment": "my-env"}, "environment must be an Environment, not str"),
        ({"script": "train.py", "max_run_duration_seconds": 0}, "max_run_duration_seconds .* above 0"),
        ({"script": "train.py", "max_run_duration_seconds": "60"}, "max_run_duration_seconds .* above 0"),
        ({"script": "train.py", "max_run_duration_seconds": float("nan")}, "max_run_duration_seconds .* above 0"),
        ({"script": "train.py", "distributed_job_config": "mpi"}, "distributed_job_config"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_configuration_that_makes_no_sense_is_refused_when_it_is_made(
    source: Path, wrong: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserErrorException, match=says):
        ScriptRunConfig(source, **wrong)


def test_a_source_directory_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(UserErrorException, match="source_directory must be"):
        ScriptRunConfig(5, script="train.py")


@pytest.mark.parametrize("argument", [None, object(), ["nested"], {"a": 1}, b"bytes"])
def test_an_argument_that_is_no_text_or_number_is_told(experiment: Experiment, source: Path, argument: Any) -> None:
    with pytest.raises(ExperimentExecutionException, match="text and numbers, not"):
        experiment.submit(ScriptRunConfig(source, script="train.py", arguments=["--x", argument]))


def test_an_argument_with_a_null_character_is_told(experiment: Experiment, source: Path) -> None:
    with pytest.raises(AzureMLException, match="null|\\\\0|x00"):
        experiment.submit(ScriptRunConfig(source, script="train.py", arguments=["a\0b"]))


@pytest.mark.parametrize("variables", [{"": "x"}, {"A=B": "x"}, {"A": "x\0y"}, {5: "x"}, ["A"]])
def test_an_environment_variable_that_cannot_be_is_told(experiment: Experiment, source: Path, variables: Any) -> None:
    environment = Environment("mine")
    with pytest.raises(UserErrorException, match="nvironment.variable"):
        environment.environment_variables = variables
        experiment.submit(ScriptRunConfig(source, script="train.py", environment=environment))


# -- where to run it


def test_an_unknown_compute_target_is_told_with_the_known_ones(experiment: Experiment, source: Path) -> None:
    with pytest.raises(ComputeTargetException) as caught:
        experiment.submit(ScriptRunConfig(source, script="train.py", compute_target="gpu-clustr"))
    workspace = experiment.workspace.name
    assert (
        message_of(caught)
        == f"ComputeTargetNotFound: No compute target named 'gpu-clustr' in workspace '{workspace}'. Known: local."
    )
    config = ScriptRunConfig(source, script="train.py")
    config.run_config.target = "cpu-cluster"
    with pytest.raises(ComputeTargetException, match="'cpu-cluster'"):
        experiment.submit(config)


def test_more_nodes_than_the_target_has_are_refused(experiment: Experiment, source: Path) -> None:
    with pytest.raises(ComputeTargetException, match="asks for 2 nodes, and the target 'local' is this one machine"):
        experiment.submit(
            ScriptRunConfig(source, script="train.py", distributed_job_config=MpiConfiguration(node_count=2))
        )
    with pytest.raises(UserErrorException, match="resume_from must be a DataPath"):
        ScriptRunConfig(source, script="train.py", resume_from="x")


# -- names, keywords, types


@pytest.mark.parametrize("name", ["", "has space", "-dash", "_x", "a/b", "ü", "x" * 256, 5, None, ["a"], "a\n"])
def test_an_experiment_name_that_azure_would_refuse_is_refused(workspace: Workspace, name: Any) -> None:
    with pytest.raises(UserErrorException, match="Experiment name .* cannot be used"):
        Experiment(workspace, name)
    with pytest.raises(UserErrorException, match="Experiment name .* cannot be used"):
        Experiment(workspace, name=name, _create_in_cloud=False)


def test_unknown_keywords_are_told_with_the_known_ones(
    workspace: Workspace, experiment: Experiment, source: Path
) -> None:
    with pytest.raises(UserErrorException, match="Experiment.* unknown: worskpace_name"):
        Experiment(workspace, "trial", worskpace_name="x")
    with pytest.raises(UserErrorException, match="start_logging.* display_name.* unknown: dispaly_name"):
        experiment.start_logging(dispaly_name="x")
    with pytest.raises(UserErrorException, match="does not know tgas. Known: tags"):
        experiment.submit(ScriptRunConfig(source, script="train.py"), tgas={})
    with pytest.raises(UserErrorException, match="unknown: outpts"):
        Run(experiment, "some-id", outpts="x")
    with pytest.raises(TypeError, match="compute_trget"):
        ScriptRunConfig(source, script="train.py", compute_trget="local")  # type: ignore[call-arg]


def test_objects_of_the_wrong_type_are_told(workspace: Workspace, experiment: Experiment, source: Path) -> None:
    for wrong, says in (
        (lambda: Experiment("my-workspace", "trial"), "workspace must be a Workspace, not str"),
        (
            lambda: experiment.submit("train.py"),
            "takes a ScriptRunConfig, .* or a Pipeline, not str",
        ),
        (lambda: experiment.submit(None), "takes a ScriptRunConfig, .* or a Pipeline, not NoneType"),
        (lambda: experiment.submit(RunConfiguration()), "or a Pipeline, not RunConfiguration"),
        (lambda: experiment.submit(ScriptRunConfig(source, script="train.py"), tags="x"), "tags must be a dictionary"),
        (lambda: experiment.submit(ScriptRunConfig(source, script="train.py"), tags={5: "x"}), "key of tags"),
        (lambda: experiment.submit(ScriptRunConfig(source, script="train.py"), properties=[1]), "properties must be"),
        (lambda: experiment.submit(ScriptRunConfig(source, script="train.py"), display_name=5), "display_name"),
        (lambda: experiment.start_logging(tags="x"), "tags must be a dictionary"),
        (lambda: experiment.start_logging(display_name=5), "display_name"),
        (lambda: experiment.start_logging(outputs=5), "outputs"),
        (lambda: Run("trial", "id"), "experiment must be an Experiment, not str"),
        (lambda: Run.get("ws", "id"), "workspace must be a Workspace, not str"),
        (lambda: Run.list("trial"), "experiment must be an Experiment, not str"),
        (lambda: Run.add_type_provider("x", "not callable"), "must be callable"),
    ):
        with pytest.raises(UserErrorException, match=says):
            wrong()


def test_a_snapshot_of_nothing_is_refused(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(AzureMLException, match="no file or folder .*nowhere"):
        experiment.start_logging(snapshot_directory=tmp_path / "nowhere")


# -- runs that are not there


def test_a_run_that_is_not_there_is_told(workspace: Workspace, experiment: Experiment) -> None:
    for ask in (
        lambda: Run.get(workspace, "not-there"),
        lambda: Run(experiment, "not-there"),
        lambda: workspace.get_run("not-there"),
    ):
        with pytest.raises(UserErrorException, match="No run with id 'not-there'"):
            ask()


@pytest.mark.parametrize("run_id", ["", "has space", "../x", "a/b", "x" * 257, 5, None, "ü", "a\n"])
def test_a_run_id_that_cannot_be_is_refused(workspace: Workspace, experiment: Experiment, run_id: Any) -> None:
    with pytest.raises(UserErrorException, match="Run id .* cannot be used"):
        Run.get(workspace, run_id)
    with pytest.raises(UserErrorException, match="Run id .* cannot be used"):
        Run(experiment, run_id)
    if run_id not in ("", None):  # those mean: make one up
        with pytest.raises(UserErrorException, match="Run id .* cannot be used"):
            experiment.start_logging(run_id=run_id)
