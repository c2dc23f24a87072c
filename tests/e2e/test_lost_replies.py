"""The reply to every first request is lost, after the server has done what was asked: nobody notices."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Environment, Experiment, Model, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.model import InferenceConfig
from azureml.core.webservice import LocalWebservice
from lapis.testing import Home
from tests.lossy import Lossy, lossy

SCORE = "import json\ndef init(): pass\ndef run(data): return json.loads(data)\n"


@pytest.fixture
def way(on_shared_server: Home) -> Iterator[Lossy]:
    with lossy(on_shared_server.address) as lost:
        yield lost


@pytest.fixture
def far(way: Lossy, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, on_shared_server: Home) -> Workspace:
    """The workspace, by a way that loses replies."""
    monkeypatch.setenv("LAPIS_TOKEN", (on_shared_server.path / "token").read_text().strip())
    monkeypatch.setenv("LAPIS_SERVER", way.url)
    return Workspace.get(workspace.name)


def test_what_is_registered_is_registered_once(far: Workspace, way: Lossy, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"weights")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("a,b\n1,2\n")
    models = [Model.register(far, "model.bin", "net", tags={"n": str(n)}) for n in range(2)]
    assert [model.version for model in models] == [1, 2]
    assert [model.version for model in Model.list(far, name="net")] == [2, 1]
    files = Dataset.File.from_files(far.get_default_datastore().upload_files([str(tmp_path / "data" / "a.csv")]))
    versions = [files.register(far, "rows", create_new_version=True, description=str(n)).version for n in range(2)]
    assert versions == [1, 2] and Dataset.get_by_name(far, "rows").version == 2
    environment = Environment("plain").register(far)
    assert environment.version == "1"
    assert far.compute_targets == {}
    ComputeTarget.create(far, "nodes", AmlCompute.provisioning_configuration(max_nodes=1)).delete()
    models[0].add_tags({"seen": "yes"})
    models[0].delete()
    assert [model.version for model in Model.list(far, name="net")] == [2]
    assert any("/models" in asked for asked in way.lost.values())


def test_a_run_is_made_changed_and_removed_as_if_nothing_was_lost(
    far: Workspace, way: Lossy, script: Callable[..., str]
) -> None:
    experiment = Experiment(far, "lossy")
    run = experiment.submit(ScriptRunConfig(script("print(1)"), script="train.py"))
    assert run.wait_for_completion()["status"] == "Completed"
    run.tag("good", "yes")
    run.add_properties({"p": "1"})
    with experiment.start_logging() as parent:
        parent.create_children(count=3)
        parent.log("loss", 1.0)
    assert {child.get_status() for child in parent.get_children()} == {"Completed"}
    assert len(list(experiment.get_runs())) == 2
    run.delete()
    parent.delete()
    assert list(experiment.get_runs()) == []
    Experiment.delete(far, experiment.id)
    assert {asked.split()[0] for asked in way.lost.values()} == {"POST", "PUT", "PATCH", "DELETE"} - {"PUT"}


def test_a_model_is_deployed_and_its_service_deleted(far: Workspace, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"weights")
    (tmp_path / "score.py").write_text(SCORE)
    model = Model.register(far, "model.bin", "net")
    config = InferenceConfig(entry_script="score.py")
    service = Model.deploy(far, "lost", [model], config, LocalWebservice.deploy_configuration())
    service.wait_for_deployment()
    assert service.run("[1]") == [1]
    service.delete()
    assert "lost" not in far.webservices


def test_the_identity_of_one_request_is_no_other_requests(workspace: Workspace, on_shared_server: Home) -> None:
    token = (on_shared_server.path / "token").read_text().strip()
    route = f"{on_shared_server.address}/api/v1/workspaces/{workspace._info['id']}/experiments"

    def ask(name: str, identity: str) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Lapis-Request": identity}
        request = urllib.request.Request(route, json.dumps({"name": name}).encode(), headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    first = ask("one", "a" * 32)
    assert first[0] == 201 and ask("one", "a" * 32) == first
    status, said = ask("two", "a" * 32)
    assert status == 409 and "asked for something else" in json.dumps(said)
    status, said = ask("two", "short")
    assert status == 400 and "16 to 64" in json.dumps(said)
    assert [each.name for each in Experiment.list(workspace)] == ["one"]
