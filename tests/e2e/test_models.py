"""Models: registered from files and from runs, found, changed, downloaded, removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Model, Run, Workspace
from azureml.core.resource_configuration import ResourceConfiguration
from azureml.exceptions import ModelNotFoundException, UserErrorException, WebserviceException

Submit = Callable[..., Any]
TRAIN = """
import os
os.makedirs('outputs/model/variables', exist_ok=True)
for name in ('saved_model.pb', 'variables/variables.index'):
    with open(f'outputs/model/{name}', 'w') as file: file.write(name)
"""


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "model.pkl"
    path.write_bytes(b"weights")
    return path


def test_a_folder_of_a_run_becomes_a_model(finish: Submit, workspace: Workspace, tmp_path: Path) -> None:
    run = finish(TRAIN)
    model = run.register_model(
        model_name="tf-mnist",
        model_path="outputs/model",
        model_framework=Model.Framework.TENSORFLOW,
        model_framework_version="2.0",
        tags={"area": "digits"},
        resource_configuration=ResourceConfiguration(cpu=1, memory_in_gb=0.5),
    )
    assert (model.name, model.version, model.id, model.run_id) == ("tf-mnist", 1, "tf-mnist:1", run.id)
    again = Model(workspace, "tf-mnist")
    assert (again.model_framework, again.model_framework_version) == ("TensorFlow", "2.0")
    assert again.resource_configuration.memory_in_gb == 0.5 and again.tags == {"area": "digits"}
    assert again.experiment_name == "trial" and again.run.id == run.id
    place = Path(again.download(str(tmp_path / "down")))
    assert (
        place.name == "model" and (place / "variables" / "variables.index").read_text() == "variables/variables.index"
    )
    assert run.register_model("tf-mnist", "outputs/model").version == 2
    assert {name: found.version for name, found in workspace.models.items()} == {"tf-mnist": 2}


def test_a_script_registers_what_it_just_wrote(finish: Submit, workspace: Workspace) -> None:
    finish(TRAIN + "from azureml.core import Run\nRun.get_context().register_model('fresh', 'outputs/model')\n")
    assert Model(workspace, "fresh").version == 1


def test_an_interactive_run_registers_from_its_outputs_without_an_upload(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = experiment.start_logging()
    Path("outputs/model.pkl").write_text("weights")
    assert run.register_model("quick", "outputs/model.pkl").download(str(tmp_path / "x")).endswith("model.pkl")
    run.complete()


def test_a_file_here_is_the_next_version(workspace: Workspace, model_file: Path, tmp_path: Path) -> None:
    first = Model.register(workspace, str(model_file), "ridge", tags={"kind": "ridge"}, description="one")
    second = Model.register(workspace, str(model_file), "ridge", properties={"auc": "0.9"})
    assert (first.version, second.version) == (1, 2)
    assert Model(workspace, "ridge", version=1).description == "one"
    assert Model(workspace, id="ridge:2").properties == {"auc": "0.9"}
    assert Path(first.download(str(tmp_path / "d"))).read_bytes() == b"weights"
    with pytest.raises(WebserviceException, match="there already"):
        first.download(str(tmp_path / "d"))
    assert first.download(str(tmp_path / "d"), exist_ok=True)


def test_models_are_found_by_what_is_known_of_them(workspace: Workspace, model_file: Path) -> None:
    for area in ("a", "b"):
        Model.register(workspace, str(model_file), "m", tags={"area": area}, model_framework="Onnx")
    Model.register(workspace, str(model_file), "other")
    assert [m.id for m in Model.list(workspace)] == ["other:1", "m:2", "m:1"]
    assert [m.id for m in Model.list(workspace, latest=True)] == ["other:1", "m:2"]
    assert [m.id for m in Model.list(workspace, tags=[["area", "a"]])] == ["m:1"]
    assert [m.id for m in Model.list(workspace, name="m", tags=["area"])] == ["m:2", "m:1"]
    assert [m.id for m in Model.list(workspace, model_framework="Onnx", latest=True)] == ["m:2"]
    assert Model(workspace, "m", tags=[["area", "a"]]).version == 1
    with pytest.raises(ModelNotFoundException, match="No version of model 'm' fits"):
        Model(workspace, "m", tags=[["area", "z"]])


def test_tags_change_properties_are_added_and_versions_are_never_used_again(
    workspace: Workspace, model_file: Path
) -> None:
    model = Model.register(workspace, str(model_file), "m", tags={"a": "1"}, properties={"p": "1"})
    model.add_tags({"b": "2"})
    model.remove_tags("a")
    model.add_properties({"q": "2"})
    model.update(description="better")
    again = Model(workspace, "m")
    assert (again.tags, again.properties, again.description) == ({"b": "2"}, {"p": "1", "q": "2"}, "better")
    with pytest.raises(UserErrorException, match="Property 'p' of model m:1 is already '1'"):
        model.add_properties({"p": "2"})
    model.delete()
    with pytest.raises(ModelNotFoundException, match="No model named 'm'"):
        Model(workspace, "m")
    assert Model.register(workspace, str(model_file), "m").version == 2


def test_a_service_finds_its_model_where_it_was_laid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for version in ("2", "10"):
        folder = tmp_path / "azureml-models" / "m" / version
        folder.mkdir(parents=True)
        (folder / "model.pkl").write_text(version)
    assert Path(Model.get_model_path("m")).read_text() == "10"
    assert Path(Model.get_model_path("m", 2)).read_text() == "2"
    with pytest.raises(ModelNotFoundException, match="no version 3"):
        Model.get_model_path("m", 3)
    with pytest.raises(ModelNotFoundException, match="'none' is not below"):
        Model.get_model_path("none")


def test_wrong_input_is_told_before_anything_is_registered(
    workspace: Workspace, experiment: Experiment, model_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(WebserviceException, match="no file or folder 'nothing.pkl'"):
        Model.register(workspace, "nothing.pkl", "m")
    with pytest.raises(UserErrorException, match="Model name '../m' cannot be used"):
        Model.register(workspace, str(model_file), "../m")
    with pytest.raises(UserErrorException, match="model_framework is text, such as Model.Framework.PYTORCH, not 3"):
        Model.register(workspace, str(model_file), "m", model_framework=3)  # type: ignore[arg-type]
    (tmp_path / "empty").mkdir()
    with pytest.raises(WebserviceException, match="is empty"):
        Model.register(workspace, str(tmp_path / "empty"), "m")
    run: Run = experiment.start_logging()
    with pytest.raises(ModelNotFoundException, match="Could not locate the provided model_path outputs/none"):
        run.register_model("m", "outputs/none")
    run.complete()
    with pytest.raises(ModelNotFoundException, match="No model named 'm' in workspace"):
        Model(workspace, "m")
    assert Model.list(workspace) == []
