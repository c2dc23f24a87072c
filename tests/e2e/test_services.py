"""Services: deployed, asked, opened with keys, updated under load, killed, brought back, deleted."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Environment, Experiment, Model, Run, Webservice, Workspace
from azureml.core.compute import AksCompute, ComputeTarget
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.image import ContainerImage, Image
from azureml.core.model import InferenceConfig
from azureml.core.webservice import AciWebservice, AksEndpoint, AksWebservice, LocalWebservice
from azureml.exceptions import ComputeTargetException, ModelNotFoundException, UserErrorException, WebserviceException
from lapis.machine.processes import started
from lapis.testing import Home, until
from tests.wheels import environment_of, make_wheel

SCORE = """
import json, os

def init():
    global weight
    with open(os.path.join(os.environ['AZUREML_MODEL_DIR'], 'model.txt')) as file:
        weight = int(file.read())
    print('weight', weight)

def run(data):
    asked = json.loads(data)
    if asked.get('raise'): raise ValueError('such data is not liked')
    return {'weight': weight, 'answer': [weight * x for x in asked['data']], 'pid': os.getpid()}
"""
ASKED = json.dumps({"data": [1, 2]})
Deploy = Callable[..., Any]


@pytest.fixture
def model(workspace: Workspace, tmp_path: Path) -> Callable[..., Model]:
    """`model(3)` registers a model that multiplies by three."""

    def register(weight: int, name: str = "times") -> Model:
        path = tmp_path / "model.txt"
        path.write_text(str(weight))
        return Model.register(workspace, str(path), name)

    return register


@pytest.fixture
def code(tmp_path: Path) -> Callable[..., InferenceConfig]:
    """`code('def run(...)...')` is a configuration with that script."""

    def write(text: str = SCORE, **more: Any) -> InferenceConfig:
        folder = tmp_path / f"code-{os.urandom(3).hex()}"
        folder.mkdir()
        (folder / "score.py").write_text(text)
        return InferenceConfig("score.py", source_directory=str(folder), **more)

    return write


@pytest.fixture
def deploy(workspace: Workspace, model: Any, code: Any) -> Iterator[Deploy]:
    """`deploy()` gives a service that answers; all of them are deleted after the test."""

    def go(name: str = "times", config: Any = None, models: Any = None, inference: Any = None, **more: Any) -> Any:
        service = Model.deploy(
            workspace, name, [model(3)] if models is None else models, inference or code(), config, **more
        )
        service.wait_for_deployment()
        return service

    yield go
    for service in Webservice.list(workspace):
        service.delete()


def ask(url: str, body: str = ASKED, key: str | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    if key is not None:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def front_of(service: Any) -> dict[str, Any]:
    service.update_deployment_state()
    front: dict[str, Any] = service._view["versions"][service._view["default"]]["front"]
    return front


# -- deployed and asked


def test_a_scoring_script_answers(deploy: Deploy, workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    service = deploy(config=AciWebservice.deploy_configuration(cpu_cores=1, memory_gb=1, tags={"area": "x"}))
    assert isinstance(service, AciWebservice) and service.state == "Healthy" and not service.auth_enabled
    assert service.run(ASKED)["answer"] == [3, 6]
    assert service.run(input_data=ASKED.encode())["weight"] == 3
    assert ask(service.scoring_uri)[0] == 200
    with urllib.request.urlopen(service.swagger_uri) as page:
        assert json.load(page)["swagger"] == "2.0"
    assert "weight 3" in service.get_logs() and len(service.get_logs(num_lines=1).splitlines()) == 1
    again = Webservice(workspace, "times")
    assert isinstance(again, AciWebservice) and again.tags == {"area": "x"} and again.scoring_uri == service.scoring_uri
    assert workspace.webservices.keys() == {"times"} and Webservice.list(workspace, model_name="times")
    assert [m.id for m in again.models] == ["times:1"] and again.serialize()["computeType"] == "ACI"
    service.wait_for_deployment(show_output=True)
    assert "Succeeded" in capsys.readouterr().out


def test_what_a_service_runs_in_is_in_no_list_of_experiments_or_runs(deploy: Deploy, workspace: Workspace) -> None:
    deploy()
    assert workspace.experiments == {}
    assert Experiment(workspace, "other").list(workspace) == [] or "~services" not in workspace.experiments
    assert list(Run.list(Experiment(workspace, "other"))) == []
    assert workspace._client.call("GET", workspace._base + "/runs")["runs"] == []


def test_two_models_lie_side_by_side_by_name_and_version(deploy: Deploy, model: Any, code: Any) -> None:
    script = """
import os
from azureml.core import Model, Run
def init():
    global found
    root = os.environ['AZUREML_MODEL_DIR']
    found = {name: open(os.path.join(root, name, '1', 'model.txt')).read() for name in sorted(os.listdir(root))}
    found['path'] = Model.get_model_path('one')
    found['run'] = type(Run.get_context()).__name__
    folder = os.path.basename(os.path.dirname(os.path.abspath(__file__)))
    found['here'] = os.path.isfile(os.path.join(folder, 'score.py'))
def run(data): return found
"""
    service = deploy(models=[model(1, "one"), model(2, "two")], inference=code(script))
    found = service.run("{}")
    assert (found["one"], found["two"]) == ("1", "2") and found["path"].endswith("azureml-models/one/1/model.txt")
    assert found["run"] == "_OfflineRun" and found["here"]


def test_a_scoring_script_that_writes_to_its_model_changes_no_stored_one(
    deploy: Deploy, model: Any, code: Any, tmp_path: Path
) -> None:
    script = """
import os
path = os.path.join(os.environ['AZUREML_MODEL_DIR'], 'model.txt')
def init():
    os.chmod(path, 0o600)
    with open(path, 'a') as file: file.write('666')
def run(data): return open(path).read()
"""
    stored = model(7, "kept")
    service = deploy(models=[stored], inference=code(script))
    assert json.loads(ask(service.scoring_uri)[1]) == "7666"
    fetched = stored.download(str(tmp_path / "down"), exist_ok=True)
    assert Path(fetched).read_text() == "7"


def test_a_script_alone_is_served_without_its_neighbours(
    deploy: Deploy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("score.py").write_text("import os\ndef init(): pass\ndef run(data): return sorted(os.listdir())\n")
    Path("secret.txt").write_text("not for the service")
    service = deploy(models=[], inference=InferenceConfig("score.py", environment=Environment("e")))
    assert [name for name in service.run("") if name != "__pycache__"] == ["score.py"]


def test_an_exception_in_run_is_told_to_whoever_asked(deploy: Deploy) -> None:
    service = deploy()
    with pytest.raises(WebserviceException, match="answered 500.*such data is not liked") as told:
        service.run('{"raise": true}')
    assert told.value.status_code == 500
    until(lambda: "ValueError: such data is not liked" in service.get_logs())
    assert service.run(ASKED)["answer"] == [3, 6]


def test_variables_of_the_environment_and_cores_reach_the_script(deploy: Deploy, code: Any) -> None:
    environment = Environment("with-variables")
    environment.environment_variables = {"COLOUR": "blue"}
    script = (
        "import os\ndef init(): pass\ndef run(data): return [os.environ['COLOUR'], os.environ['OMP_NUM_THREADS']]\n"
    )
    config = AciWebservice.deploy_configuration(cpu_cores=1.5)
    service = deploy(models=[], inference=code(script, environment=environment), config=config)
    assert service.run("") == ["blue", "2"] and service.environment.name == "with-variables"


def test_a_service_runs_in_the_environment_that_is_built_for_it(
    deploy: Deploy, workspace: Workspace, code: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "import lapistoy, sys\ndef init(): pass\ndef run(data): return [lapistoy.VERSION, sys.version_info[:2]]\n"
    make_wheel(tmp_path / "wheels", "lapistoy", "1.0")
    environment = environment_of(tmp_path / "wheels", "lapistoy==1.0")
    environment.python.conda_dependencies.set_python_version("3.8")
    service = Model.deploy(workspace, "toy", [], code(script, environment=environment), show_output=True)
    assert service.run("") == ["1.0", [3, 8]]
    told = capsys.readouterr().out
    assert "Building environment" in told and "answers at port" in told
    assert "Building environment" in service.get_logs(init=True)
    with pytest.raises(UserErrorException, match="lapistoy"):
        service.update(inference_config=code(script, environment=environment_of(tmp_path / "wheels", "lapistoy==9")))
    assert service.run("")[0] == "1.0"


# -- what cannot be


def test_a_script_that_cannot_start_fails_with_its_own_traceback(
    workspace: Workspace, code: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = code("def init():\n    raise RuntimeError('no weights here')\ndef run(data): pass\n")
    service = Model.deploy(workspace, "broken", [], broken)
    with pytest.raises(WebserviceException) as told:
        service.wait_for_deployment(show_output=True)
    assert "RuntimeError: no weights here" in told.value.message and "score.py" in told.value.message
    assert service.state == "Failed" and "no weights here" in service.error["message"]
    assert "no weights here" in service.get_logs()
    with pytest.raises(WebserviceException, match="Nobody answers"):
        service.run("{}")
    service.delete()


def test_what_cannot_be_is_refused_before_anything_is_made(
    workspace: Workspace, model: Any, code: Any, tmp_path: Path
) -> None:
    with pytest.raises(WebserviceException, match="There is no entry script"):
        InferenceConfig("missing.py", source_directory=str(tmp_path))
    with pytest.raises(WebserviceException, match="no function run"):
        Model.deploy(workspace, "norun", [], code("def init(): pass\n"))
    with pytest.raises(WebserviceException, match="not Python that can be read"):
        Model.deploy(workspace, "nopython", [], code("def run(data) return 1\n"))
    with pytest.raises(ModelNotFoundException, match="No model named 'nowhere'"):
        Model.deploy(workspace, "nomodel", ["nowhere:1"], code())
    with pytest.raises(WebserviceException, match="3 to 32 lower-case"):
        Model.deploy(workspace, "No Such Name", [model(1)], code())
    with pytest.raises(WebserviceException, match="cpu_cores must be between 0.001 and 100000"):
        AciWebservice.deploy_configuration(cpu_cores=0)
    with pytest.raises(WebserviceException, match="cannot both be True"):
        AksWebservice.deploy_configuration(auth_enabled=True, token_auth_enabled=True)
    with pytest.raises(WebserviceException, match="Give one of them"):
        AksWebservice.deploy_configuration(autoscale_enabled=True, num_replicas=2)
    with pytest.raises(WebserviceException, match="more than autoscale_max_replicas"):
        AksWebservice.deploy_configuration(autoscale_min_replicas=3, autoscale_max_replicas=2)
    with pytest.raises(WebserviceException, match="cannot be served without code"):
        Model.deploy(workspace, "nocode", [model(1)])
    with pytest.raises(WebserviceException, match="exactly one model"):
        Model.deploy(workspace, "nothing", [])
    assert Webservice.list(workspace) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        (
            "POST",
            "",
            {"name": "abc", "kind": "ACI", "replicas": 2},
            "service has no field 'replicas'. Known: name,",
        ),
        ("POST", "", {"name": "abc", "kind": "VM"}, "service.kind must be one of ACI, AKS, AKSENDPOINT, LOCAL"),
        (
            "POST",
            "",
            {"name": "abc", "kind": "ACI", "settings": {"cpus": 2}},
            "has no field 'cpus'. Known: cpu_cores",
        ),
        ("PATCH", "/abc", {"replicas": 2}, "change has no field 'replicas'. Known: content,"),
        ("POST", "/abc/versions/two", {"settings": {"num_replicas": 10**6}}, "num_replicas must be between 1 and 1000"),
        ("PATCH", "/abc/versions/two", {"tags": ["a"]}, "change.tags must be a dictionary"),
        ("POST", "/abc/keys", {"which": 1}, "key.which must be text"),
    ],
)
def test_a_request_with_a_field_that_is_unknown_or_wrong_is_refused_by_its_name(
    workspace: Workspace, method: str, path: str, body: Any, said: str
) -> None:
    with pytest.raises((UserErrorException, WebserviceException), match=said):
        workspace._client.call(method, f"{workspace._base}/services{path}", body)
    assert Webservice.list(workspace) == []


def test_a_name_that_is_taken_is_refused_and_can_be_overwritten(
    deploy: Deploy, workspace: Workspace, model: Any, code: Any
) -> None:
    first = deploy()
    with pytest.raises(WebserviceException, match="'times' is there already. Pass overwrite=True"):
        Model.deploy(workspace, "times", [model(4)], code())
    with pytest.raises(WebserviceException, match="is there already"):
        Webservice.check_for_existing_webservice(workspace, "times")
    assert Webservice.check_for_existing_webservice(workspace, "other") is False
    second = deploy(models=[model(5)], overwrite=True)
    assert second.run(ASKED)["weight"] == 5 and second.scoring_uri == first.scoring_uri


def test_a_port_is_given_taken_and_free_again(deploy: Deploy, workspace: Workspace, model: Any, code: Any) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(WebserviceException, match=f"Port {port} of 127.0.0.1 cannot be used"):
            Model.deploy(workspace, "local", [], code(), LocalWebservice.deploy_configuration(port=port))
    service = deploy("local", LocalWebservice.deploy_configuration(port=port))
    assert isinstance(service, LocalWebservice) and (service.port, service.state) == (port, "running")
    assert service.scoring_uri == f"http://localhost:{port}/score" and service.run(ASKED)["answer"] == [3, 6]
    with pytest.raises(WebserviceException, match=f"Port {port} belongs to service 'local'"):
        Model.deploy(workspace, "second", [], code(), LocalWebservice.deploy_configuration(port=port))
    service.delete()
    assert service.state == "deleted"
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", port))  # nobody listens there any more
    with pytest.raises(WebserviceException, match="No service named 'local'"):
        Webservice(workspace, "local")


def test_a_model_that_is_served_cannot_be_deleted(deploy: Deploy, workspace: Workspace) -> None:
    service = deploy()
    with pytest.raises(UserErrorException, match="times:1 is deployed as times and cannot be deleted"):
        Model(workspace, "times").delete()
    lineage = workspace._client.call("GET", f"{workspace._base}/models/times/1/lineage")
    assert lineage["services"] == ["times"]
    with pytest.raises(UserErrorException, match="has services: times"):
        workspace.delete()
    service.delete()
    Model(workspace, "times").delete()


# -- opened


def test_only_a_key_opens_a_service_that_has_keys(deploy: Deploy) -> None:
    service = deploy(config=AciWebservice.deploy_configuration(auth_enabled=True, primary_key="a key of ours"))
    primary, secondary = service.get_keys()
    assert primary == "a key of ours" and len(secondary) > 20
    assert ask(service.scoring_uri)[0] == 401 and ask(service.scoring_uri, key="wrong")[0] == 401
    assert ask(service.scoring_uri, key=primary)[0] == ask(service.scoring_uri, key=secondary)[0] == 200
    service.regen_key("Primary")
    assert ask(service.scoring_uri, key=primary)[0] == 401
    assert ask(service.scoring_uri, key=service.get_keys()[0])[0] == ask(service.scoring_uri, key=secondary)[0] == 200
    service.regen_key("Secondary", set_key="another of ours")
    assert ask(service.scoring_uri, key="another of ours")[0] == 200
    with pytest.raises(WebserviceException, match="Primary and a Secondary"):
        service.regen_key("third")
    service.update(auth_enabled=False)
    assert ask(service.scoring_uri)[0] == 200
    with pytest.raises(WebserviceException, match="has no keys"):
        service.get_keys()


def test_a_token_opens_a_service_that_has_tokens(deploy: Deploy) -> None:
    service = deploy(config=AksWebservice.deploy_configuration(token_auth_enabled=True, num_replicas=1))
    token, refresh = service.get_token()
    assert refresh.timestamp() > time.time()
    assert ask(service.scoring_uri)[0] == 401 and ask(service.scoring_uri, key=token)[0] == 200
    assert ask(service.scoring_uri, key=token[:-1] + ("0" if token[-1] != "0" else "1"))[0] == 401
    assert service.run(ASKED)["answer"] == [3, 6] and service.get_access_token().token_type == "Bearer"
    with pytest.raises(WebserviceException, match="has no keys: tokens open it"):
        service.get_keys()


def test_no_key_is_in_the_database_or_in_a_run(deploy: Deploy, shared_home: Home) -> None:
    service = deploy(config=AksWebservice.deploy_configuration(num_replicas=1, primary_key="a-very-secret-key"))
    assert service.auth_enabled and service.run(ASKED)["answer"] == [3, 6]
    for path in shared_home.path.glob("lapis.db*"):
        assert b"a-very-secret-key" not in path.read_bytes()
    for path in (shared_home.path / "work").rglob("*.json"):
        assert b"a-very-secret-key" not in path.read_bytes()


# -- changed


def test_an_update_loses_no_request(deploy: Deploy, model: Any) -> None:
    service = deploy()
    answers: Counter[str] = Counter()
    over = threading.Event()

    def go_on_asking() -> None:
        while not over.is_set():
            status, text = ask(service.scoring_uri)
            answers[f"weight {json.loads(text)['weight']}" if status == 200 else f"{status} {text}"] += 1

    threads = [threading.Thread(target=go_on_asking) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for weight in (4, 5):
            so_far = sum(answers.values())
            until(lambda before=so_far: sum(answers.values()) > before + 50)  # type: ignore[misc]
            service.update(models=[model(weight)])
            service.wait_for_deployment()
            assert service.run(ASKED)["weight"] == weight
        until(lambda: answers["weight 5"] > 20)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert set(answers) == {"weight 3", "weight 4", "weight 5"}


def test_an_update_that_fails_leaves_what_was_there(deploy: Deploy, code: Any, model: Any) -> None:
    service = deploy()
    service.update(inference_config=code("def init(): raise OSError('gone wrong')\ndef run(data): pass\n"))
    with pytest.raises(WebserviceException, match="gone wrong.*Revision 1 goes on answering"):
        service.wait_for_deployment()
    assert service.state == "Failed" and service.run(ASKED)["weight"] == 3
    service.update(inference_config=code(), models=[model(6)])
    service.wait_for_deployment()
    assert service.run(ASKED)["weight"] == 6 and service.error is None


def test_labels_change_without_a_restart(deploy: Deploy, workspace: Workspace) -> None:
    service = deploy(config=AciWebservice.deploy_configuration(tags={"a": "1"}, properties={"p": "1"}))
    pid = service.run(ASKED)["pid"]
    service.add_tags({"b": "2"})
    service.remove_tags(["a"])
    service.add_properties({"q": "2"})
    service.update(description="better")
    again = Webservice(workspace, "times")
    assert (again.tags, again.properties, again.description) == ({"b": "2"}, {"p": "1", "q": "2"}, "better")
    assert again.run(ASKED)["pid"] == pid and again.state == "Healthy"
    with pytest.raises(UserErrorException, match="Property 'p' of service 'times' is already '1'"):
        service.add_properties({"p": "2"})
    with pytest.raises(WebserviceException, match="nothing to change"):
        service.update()


def test_a_local_service_is_reloaded_with_what_its_script_is_now(deploy: Deploy, code: Any) -> None:
    inference = code("def init(): pass\ndef run(data): return 'before'\n")
    service = deploy("local", LocalWebservice.deploy_configuration(), [], inference)
    Path(inference.source_directory, "score.py").write_text("def init(): pass\ndef run(data): return 'after'\n")
    assert service.run("") == "before"
    service.reload(wait=True)
    assert service.run("") == "after"
    clone = service.deploy_to_cloud("cloudy", AciWebservice.deploy_configuration())
    clone.wait_for_deployment()
    assert clone.run("") == "after" and clone.compute_type == "ACI"


def test_a_cluster_service_has_replicas(deploy: Deploy) -> None:
    service = deploy(config=AksWebservice.deploy_configuration(num_replicas=2, auth_enabled=False, cpu_cores=0.5))
    assert len(front_of(service)["replicas"]) == 2 and service.num_replicas == 2
    assert service.container_resource_requirements.cpu == 0.5 and service.autoscaler.autoscale_enabled is False
    service.update(autoscale_enabled=True, autoscale_max_replicas=2)
    assert service.autoscaler.autoscale_enabled and service.autoscaler.max_replicas == 2
    service.update(num_replicas=1)
    service.wait_for_deployment()
    assert len(front_of(service)["replicas"]) == 1 and service.run(ASKED)["answer"] == [3, 6]


def test_an_endpoint_splits_requests_between_its_versions(deploy: Deploy, model: Any, workspace: Workspace) -> None:
    config = AksEndpoint.deploy_configuration(num_replicas=1, version_name="one", auth_enabled=False)
    service = deploy(config=config)
    assert isinstance(service, AksEndpoint) and set(service.versions) == {"one"} and service.is_default
    service.create_version("two", models=[model(4)], num_replicas=1, traffic_percentile=50)
    service.wait_for_deployment()

    def shares(count: int = 60) -> Counter[int]:
        return Counter(json.loads(ask(service.scoring_uri)[1])["weight"] for _ in range(count))

    until(lambda: len(shares()) == 2)
    assert 10 < shares()[4] < 50
    assert service.versions["two"].traffic_percentile == 50 and service.versions["two"].run(ASKED)["weight"] == 4
    with pytest.raises(WebserviceException, match="would get 110 percent"):
        service.create_version("three", models=[model(5)], traffic_percentile=60)
    with pytest.raises(WebserviceException, match="'one' is the default one"):
        service.delete_version("one")
    service.update_version("two", traffic_percentile=100)
    assert set(shares()) == {4}
    service.update_version("two", is_default=True)
    assert [service.versions[name].traffic_percentile for name in ("one", "two")] == [0, 100]
    service.delete_version("one")  # through which the requests came in: the other one takes its place
    service.wait_for_deployment()
    assert set(shares()) == {4} and set(service.versions) == {"two"}
    with pytest.raises(WebserviceException, match="has no version 'one'"):
        service.update_version("one", traffic_percentile=1)


# -- killed


def test_a_killed_worker_is_replaced(deploy: Deploy) -> None:
    service = deploy()
    killed = service.run(ASKED)["pid"]
    os.kill(killed, signal.SIGKILL)
    until(lambda: ask(service.scoring_uri)[0] == 200)
    assert service.run(ASKED)["pid"] != killed


def test_a_killed_front_comes_back_at_the_same_address(deploy: Deploy) -> None:
    service = deploy()
    pid = front_of(service)["pid"]
    os.kill(pid, signal.SIGKILL)

    def answers() -> bool:
        try:
            return ask(service.scoring_uri)[0] == 200
        except OSError:
            return False

    until(answers)
    until(lambda: front_of(service) and front_of(service)["pid"] != pid and service.state == "Healthy")
    version = service._view["versions"][""]
    assert version["restarts"] == 1 and "signal 9" in version["why"]
    assert "it ended, and was started again" in service.get_logs()


def test_a_killed_agent_is_replaced_and_nobody_notices(deploy: Deploy, shared_home: Home) -> None:
    service = deploy(config=AciWebservice.deploy_configuration(auth_enabled=True))
    before = service.run(ASKED)["pid"]
    run_id = service._view["versions"][""]["run_id"]
    folder = shared_home.path / "work" / run_id
    agent = json.loads((folder / "agent.json").read_text())["pid"]
    os.kill(agent, signal.SIGKILL)
    until(lambda: json.loads((folder / "agent.json").read_text())["pid"] != agent)
    assert service.run(ASKED)["pid"] == before
    old = service.get_keys()[0]
    service.regen_key("Primary")  # through the new agent
    assert ask(service.scoring_uri, key=old)[0] == 401 and service.run(ASKED)["pid"] == before


def test_a_server_with_services_is_not_idle(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAPIS_IDLE_SECONDS", "0.5")
    Path("score.py").write_text("def init(): pass\ndef run(data): return 1\n")
    workspace = Workspace.create("idle", show_output=False)
    service = Model.deploy(workspace, "steady", [], InferenceConfig("score.py"))
    service.wait_for_deployment()
    pid = home.server_pid
    time.sleep(1.5)  # three times as long as an idle server would stay
    assert home.server_pid == pid and service.run("") == 1
    service.delete()
    until(lambda: started(pid) is None)  # type: ignore[arg-type]


def test_a_service_goes_on_without_the_server_and_is_found_again(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = Workspace.create("alone", show_output=False)
    Path("score.py").write_text("import os\ndef init(): pass\ndef run(data): return os.getpid()\n")
    service = Model.deploy(workspace, "steady", [], InferenceConfig("score.py"))
    service.wait_for_deployment()
    url, pid = service.scoring_uri, service.run("")
    home.kill_server()
    assert ask(url)[1] == str(pid)
    home.start()
    again = Webservice(Workspace.get("alone"), "steady")
    until(lambda: front_of(again) is not None)
    assert again.state == "Healthy" and again.run("") == pid and again.scoring_uri == url
    home.kill_server()
    os.kill(front_of_home(home), signal.SIGKILL)
    home.start()  # finds that the front is gone
    service = Webservice(Workspace.get("alone"), "steady")
    service.wait_for_deployment()
    assert service.run("") != pid and service.scoring_uri == url
    service.delete()


def front_of_home(home: Home) -> int:
    """The process that a home's only service listens with."""
    found = [json.loads(path.read_text())["pid"] for path in (home.path / "work").glob("*/front/state.json")]
    assert len(found) == 1
    return int(found[0])


# -- 2019


def test_the_ways_of_2019_lead_to_the_same_service(
    deploy: Deploy, workspace: Workspace, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("score.py").write_text("import helper\n" + SCORE)
    Path("helper.py").write_text("")
    CondaDependencies.create(conda_packages=[]).save_to_file(".", "myenv.yml")
    config = ContainerImage.image_configuration(
        "score.py", "python", conda_file="myenv.yml", dependencies=["helper.py"], tags={"kind": "image"}
    )
    image = Image.create(workspace, "timesimage", [model(7)], config)
    image.wait_for_creation(show_output=True)
    assert image.creation_state == "Succeeded" and workspace.images["timesimage"].id == "timesimage:1"
    service = Webservice.deploy_from_image(workspace, "fromimage", image, AciWebservice.deploy_configuration())
    service.wait_for_deployment()
    assert service.run(ASKED)["weight"] == 7 and service.image.id == "timesimage:1"
    other = Webservice.deploy_from_model(workspace, "frommodel", [Model(workspace, "times")], config)
    other.wait_for_deployment()
    assert other.run(ASKED)["weight"] == 7
    Path("model.txt").write_text("8")
    third = Webservice.deploy(workspace, "frompaths", ["model.txt"], config)
    third.wait_for_deployment()
    assert third.run(ASKED)["weight"] == 8 and Model(workspace, "model.txt").version == 1
    assert {each.name for each in Webservice.list(workspace, image_name="timesimage")} == {"fromimage"}


# -- measured and packed


def test_a_profile_tells_how_long_answers_take_and_what_they_need(
    workspace: Workspace, model: Any, code: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = Model.profile(workspace, "quick", [model(3)], code(), input_data=ASKED, cpu=1.0, memory_in_gb=0.5)
    profile.wait_for_completion(show_output=True)
    found = profile.get_details()
    assert found["state"] == "Succeeded" and found["successRate"] == 100.0 and found["totalQueries"] > 20
    assert 0 < found["latencyPercentile50InMs"] <= found["latencyPercentile99InMs"]
    assert 0.001 < found["maxUtilizedMemoryInGB"] < 1 and profile.requested_cpu == 1.0
    until(lambda: workspace._client.call("GET", workspace._base + "/services")["services"] == [])
    store = workspace.get_default_datastore()
    Path("samples.csv").write_text('sample_request\n"{""data"": [1]}"\n"{""data"": [2, 3]}"\n')
    store.upload_files(["samples.csv"], target_path="samples", show_progress=False)
    table = Dataset.Tabular.from_delimited_files((store, "samples/samples.csv"))
    second = Model.profile(workspace, "table", [model(3)], code(), input_dataset=table)
    second.wait_for_completion()
    assert second.success_rate == 100.0
    broken = Model.profile(workspace, "broken", [model(3)], code(), input_data='{"raise": 1}')
    with pytest.raises(WebserviceException, match="None of .* sample requests was answered"):
        broken.wait_for_completion()


def test_a_package_serves_without_lapis(workspace: Workspace, model: Any, code: Any, tmp_path: Path) -> None:
    package = Model.package(workspace, [model(9)], code(), generate_dockerfile=True)
    package.wait_for_creation()
    folder = tmp_path / "package"
    package.save(str(folder))
    assert "FROM python:" in (folder / "Dockerfile").read_text() and "Model times:1" in package.get_logs()
    with pytest.raises(WebserviceException, match="is not empty"):
        package.save(str(folder))
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SERVICE_KEYS": "the key"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-I", "serve.py", "--port", str(port)]
    with subprocess.Popen(command, cwd=folder, env=clean, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            until(lambda: "answers at port" in process.stderr.readline())  # type: ignore[union-attr]
            url = f"http://127.0.0.1:{port}/score"
            assert ask(url)[0] == 401
            assert json.loads(ask(url, key="the key")[1])["answer"] == [9, 18]
        finally:
            process.terminate()


def test_a_cluster_of_its_own_kind_takes_services(deploy: Deploy, workspace: Workspace) -> None:
    target = ComputeTarget.create(workspace, "my-aks", AksCompute.provisioning_configuration(agent_count=2))
    target.wait_for_completion(show_output=True)
    assert isinstance(ComputeTarget(workspace, "my-aks"), AksCompute) and target.agent_count == 2
    service = deploy(config=AksWebservice.deploy_configuration(num_replicas=1), deployment_target=target)
    assert service.compute_name == "my-aks" and service.run(ASKED)["answer"] == [3, 6]
    with pytest.raises(UserErrorException, match="serves times and cannot be deleted"):
        target.delete()
    with pytest.raises(ComputeTargetException, match="No compute target named 'nowhere'"):
        Model.deploy(workspace, "elsewhere", [], deployment_target="nowhere")


def test_a_model_without_code_is_served_as_its_framework_serves_it(
    deploy: Deploy, workspace: Workspace, tmp_path: Path
) -> None:
    numpy = pytest.importorskip("numpy")
    from tests.serving.models import linear

    path = linear(tmp_path / "digits.onnx", numpy.eye(2, dtype="float32"))
    model = Model.register(workspace, str(path), "digits", model_framework=Model.Framework.ONNX)
    service = Model.deploy(workspace, "digits", [model])
    service.wait_for_deployment()
    assert service.environment.name == "no-code-onnx"
    answer = service.run(json.dumps({"data": [[1, 0]]}))
    assert answer["predict"][0][0] > answer["predict"][0][1]
    again = Model.register(workspace, str(path), "digits", model_framework=Model.Framework.ONNX)
    service.update(models=[again])
    service.wait_for_deployment()
    assert [each.version for each in service.models] == [2]
    service.delete()


def test_a_secret_variable_reaches_the_script_and_no_database(
    deploy: Deploy, code: Any, on_shared_server: Home, workspace: Workspace, tmp_path: Path
) -> None:
    canary = f"canary-{os.urandom(6).hex()}"
    environment = Environment("with-secret")
    environment.python.user_managed_dependencies = True
    environment.environment_variables = {"DB_PASSWORD": canary, "PLAIN": "shown"}
    text = "import os\ndef init(): pass\ndef run(data): return os.environ['DB_PASSWORD'][::-1] + os.environ['PLAIN']\n"
    service = deploy("secret", inference=code(text, environment=environment))
    assert service.run(ASKED) == canary[::-1] + "shown"
    assert canary not in json.dumps(service._view) and "lapis-sealed:" in json.dumps(service._view)
    databases = list(on_shared_server.path.glob("lapis.db*"))
    assert databases and not any(canary.encode() in path.read_bytes() for path in databases)
    package = Model.package(workspace, [], code(text, environment=environment))
    package.wait_for_creation()
    package.save(str(tmp_path / "package"))
    about = json.loads((tmp_path / "package" / "package.json").read_text())
    assert about["environment_variables"]["DB_PASSWORD"] == canary, "elsewhere nobody could open it"


@pytest.mark.full
def test_the_log_of_a_service_that_prints_for_ever_takes_little_of_the_disk(
    deploy: Deploy, code: Any, on_shared_server: Home
) -> None:
    talks = "import sys\ndef init(): pass\ndef run(data):\n    print((data + ' ') * 200_000)\n    print('said', data)\n"
    service = deploy(inference=code(talks))
    for number in range(80):  # some 80 MB
        service.run(f"{number:04}")
    until(lambda: "said 0079" in service.get_logs(num_lines=5))
    home = on_shared_server.path

    def logs() -> list[Path]:
        return [*home.glob("work/*/std_log.txt"), *home.glob("live/*/*/user_logs/std_log.txt")]

    large = [path for path in logs() if path.stat().st_size > 60e6]
    assert len(large) == 2  # with the agent and with the server
    until(lambda: all(path.stat().st_blocks * 512 < 40e6 for path in large))
    service.run("0099")
    until(lambda: "said 0099" in service.get_logs(num_lines=5))
