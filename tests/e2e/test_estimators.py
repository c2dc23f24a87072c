"""Estimators as they are submitted: what reaches the script, and what is remembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Experiment, ScriptRunConfig, Workspace
from azureml.data.datapath import DataPath
from azureml.exceptions import TrainingException, UserErrorException
from azureml.train.dnn import PyTorch, TensorFlow
from azureml.train.estimator import Estimator
from azureml.train.sklearn import SKLearn

SHOW = """
import json, os, sys
found = {"arguments": sys.argv[1:], "files": {}, "variables": dict(os.environ)}
for path in [*sys.argv[1:], os.environ.get("extra", "")]:
    if os.path.isdir(path):
        found["files"][path] = sorted(os.listdir(path))
with open("outputs/found.json", "w") as file:
    json.dump(found, file)
"""


@pytest.fixture(autouse=True)
def in_this_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPIS_ENVIRONMENTS", "host")  # what the packages come to is told elsewhere


@pytest.fixture
def source(script: Callable[..., str]) -> str:
    return script(SHOW)


@pytest.fixture
def store(workspace: Workspace, tmp_path: Path) -> Any:
    """up/a.txt in the default datastore"""
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "a.txt").write_text("A")
    found = workspace.get_default_datastore()
    found.upload(str(tmp_path / "filled"), "up", show_progress=False)
    return found


def found_by(run: Any, tmp_path: Path) -> Any:
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Completed", run.get_details()
    run.download_file("outputs/found.json", str(tmp_path / "found.json"))
    return json.loads((tmp_path / "found.json").read_text())


def test_an_estimator_runs_its_script_with_its_parameters(experiment: Experiment, source: str, tmp_path: Path) -> None:
    made = TensorFlow(
        source,
        compute_target="local",
        entry_script="train.py",
        script_params={"--batch-size": 50, "--verbose": "", "--rate": 0.01},
        use_gpu=True,
        conda_packages=["scikit-learn"],
        environment_variables={"MINE": "1"},
    )
    run = experiment.submit(made, tags={"kind": "estimator"})
    found = found_by(run, tmp_path)
    assert found["arguments"] == ["--batch-size", "50", "--verbose", "--rate", "0.01"]
    assert found["variables"]["MINE"] == "1"
    definition = run.get_details()["runDefinition"]
    assert definition["environment"]["python"]["condaDependencies"]["dependencies"][0] == "python=3.6.2"
    assert run.get_tags()["kind"] == "estimator"


def test_data_in_the_parameters_becomes_a_path(experiment: Experiment, source: str, store: Any, tmp_path: Path) -> None:
    dataset = Dataset.File.from_files((store, "up/a.txt")).register(experiment.workspace, "letters")
    again = Dataset.File.from_files((store, "up/*.txt"))
    params = {
        "--reference": store.path("up").as_mount(),
        "--data": dataset.as_named_input("letters").as_mount(),
        "--folder": again.as_named_input("folder").as_download("got"),
    }
    made = Estimator(source, compute_target="local", entry_script="train.py", script_params=params)
    run = experiment.submit(made)
    found = found_by(run, tmp_path)
    reference, path, _ = found["arguments"][1::2]
    assert found["files"][reference] == ["a.txt"]
    assert path.endswith("a.txt")
    assert dataset.id in [each["dataset"].id for each in run.get_details()["inputDatasets"]]


def test_inputs_are_there_without_an_argument(experiment: Experiment, source: str, store: Any, tmp_path: Path) -> None:
    folder = Dataset.File.from_files((store, "up/**")).as_named_input("extra").as_mount()
    made = SKLearn(source, compute_target="local", entry_script="train.py", inputs=[folder, store.as_mount()])
    found = found_by(experiment.submit(made), tmp_path)
    assert found["arguments"] == []
    assert Path(found["variables"]["extra"]).name == "a.txt"  # a dataset of one file is that file
    assert Path(found["variables"]["AZUREML_DATAREFERENCE_workspaceblobstore"], "up", "a.txt").is_file()


def test_submit_may_change_the_parameters_for_one_run(
    experiment: Experiment, source: str, store: Any, tmp_path: Path
) -> None:
    letters = Dataset.File.from_files((store, "up/a.txt")).as_named_input("letters").as_mount()
    made = Estimator(
        source, compute_target="local", entry_script="train.py", script_params={"--a": 1, "--b": 2}, inputs=[letters]
    )
    run = experiment.submit(made, script_params={"--b": 3}, display_name="another")
    assert found_by(run, tmp_path)["arguments"] == ["--a", "1", "--b", "3"]
    assert run.display_name == "another"
    assert found_by(experiment.submit(made), tmp_path)["arguments"] == ["--a", "1", "--b", "2"]


@pytest.mark.parametrize("kind", [PyTorch, ScriptRunConfig])
def test_a_run_goes_on_from_the_files_of_an_earlier_one(
    experiment: Experiment, source: str, store: Any, tmp_path: Path, kind: Any
) -> None:
    earlier = DataPath(store, "up")
    if kind is PyTorch:
        config: Any = PyTorch(source, compute_target="local", entry_script="train.py", resume_from=earlier)
    else:
        config = ScriptRunConfig(source, "train.py", ["--epochs", 2], resume_from=earlier)
    found = found_by(experiment.submit(config), tmp_path)
    assert found["arguments"][-2] == "--resume-from"
    place = found["arguments"][-1]
    assert found["files"][place] == ["a.txt"]
    assert found["variables"]["AZUREML_DATAREFERENCE_MODEL_LOCATION"] == place


def test_a_child_may_be_an_estimator(experiment: Experiment, source: str, tmp_path: Path) -> None:
    with experiment.start_logging() as parent:
        child = parent.submit_child(Estimator(source, compute_target="local", entry_script="train.py"))
        assert found_by(child, tmp_path)["arguments"] == []
    assert [each.id for each in parent.get_children()] == [child.id]


def test_what_is_wrong_is_said_before_anything_is_sent(experiment: Experiment, source: str) -> None:
    with pytest.raises(TrainingException, match="entry_script"):
        experiment.submit(Estimator(source, compute_target="local"))
    with pytest.raises(UserErrorException, match="There is no script 'tain.py'"):
        experiment.submit(Estimator(source, compute_target="local", entry_script="tain.py"))
    good = Estimator(source, compute_target="local", entry_script="train.py")
    with pytest.raises(UserErrorException, match="does not know epochs"):
        experiment.submit(good, epochs=3)
    with pytest.raises(UserErrorException, match="ScriptRunConfig, an estimator, a HyperDriveConfig or a Pipeline"):
        experiment.submit("train.py")
    assert list(experiment.get_runs()) == []
