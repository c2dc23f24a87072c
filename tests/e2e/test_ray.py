"""Lives of runs on a real Ray cluster: as on this machine, and what only happens there."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import ComputeTarget, Dataset, Environment, Experiment, Model, ScriptRunConfig, Workspace
from azureml.core.compute_target import ComputeTargetException
from azureml.core.model import InferenceConfig
from azureml.core.runconfig import PyTorchConfiguration
from azureml.core.webservice import AksWebservice
from lapis.cli.__main__ import main
from lapis.machine.processes import family
from lapis.sdk.compute.attached_compute import RayCompute
from lapis.testing import Home, until, until_written
from tests.ray_cluster import RayCluster
from tests.wheels import make_wheel

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("ray")]
SOON = 120.0  # seconds: Ray starts a process on a node for every agent
ENDED = ("Completed", "Failed", "Canceled")


@pytest.fixture(scope="module")
def ray_home() -> Iterator[Home]:
    home = Home(Path(tempfile.mkdtemp(prefix="lapis-ray-home-")))
    yield home
    home.end()


@pytest.fixture
def workspace(
    ray_cluster: RayCluster, ray_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    """A workspace of a server that listens in the cluster's network."""
    monkeypatch.setenv("LAPIS_HOME", str(ray_home.path))
    monkeypatch.setenv("LAPIS_HOST", ray_cluster.head_address)
    monkeypatch.chdir(tmp_path)
    workspace = Workspace.create(f"ray-{os.urandom(4).hex()}", show_output=False)
    attached(workspace, ray_cluster, "ray")
    yield workspace
    for run in Experiment(workspace, "trial").get_runs():
        run.cancel()
    for run in Experiment(workspace, "trial").get_runs():
        until(lambda run=run: run.get_status() in ENDED, seconds=SOON)  # type: ignore[misc]


def attached(workspace: Workspace, cluster: RayCluster, name: str, vm_size: str = "STANDARD_D2_V2") -> RayCompute:
    made: RayCompute = ComputeTarget.attach(
        workspace, name, RayCompute.attach_configuration(cluster.address, vm_size=vm_size, max_nodes=4)
    )
    return made


def config(folder: str, nodes: int = 1, target: str = "ray", **more: Any) -> ScriptRunConfig:
    made = ScriptRunConfig(folder, script="train.py", compute_target=target, **more)
    made.run_config.node_count = nodes
    return made


def test_a_run_has_logs_metrics_outputs_data_and_an_environment_there(
    experiment: Experiment, script: Callable[..., str], tmp_path: Path, ray_cluster: RayCluster
) -> None:
    make_wheel(tmp_path / "wheels", "toy", "1.0")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"--no-index\n--find-links {tmp_path / 'wheels'}\ntoy==1.0\n")
    environment = Environment.from_pip_requirements("toy-env", str(requirements))
    environment.python.conda_dependencies.set_python_version(".".join(map(str, sys.version_info[:2])))
    (tmp_path / "data").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "data" / name).write_text("from the data set")
    store = experiment.workspace.get_default_datastore()
    store.upload(str(tmp_path / "data"), "ray-data", show_progress=False)
    data = Dataset.File.from_files((store, "ray-data"))
    code = """
import os, socket, sys, toy
from azureml.core import Run
run = Run.get_context()
print("on", socket.gethostname(), "with", open(os.path.join(sys.argv[1], "a.txt")).read())
run.log("loss", 0.5)
with open("outputs/model.txt", "w") as file: file.write("a model")
"""
    given = config(script(code), arguments=[data.as_named_input("files").as_download()], environment=environment)
    run = experiment.submit(given)
    assert run.wait_for_completion()["status"] == "Completed"
    log = run.get_logs()["user_logs/std_log.txt"]
    assert "on ray-n" in log and "with from the data set" in log
    assert run.get_metrics() == {"loss": 0.5}
    assert "outputs/model.txt" in run.get_file_names()
    built = [home for home in ray_cluster.folder.glob("home?/environments/*/pyvenv.cfg")]
    assert built, "the environment was built on the node"
    until(lambda: not ComputeTarget(experiment.workspace, "ray")._view["nodes"], seconds=SOON)


def test_the_nodes_of_a_run_have_addresses_of_their_own_and_share_outputs(
    experiment: Experiment, script: Callable[..., str]
) -> None:
    code = """
import os, socket, time
rank = os.environ["RANK"]
listener = socket.create_server(("", int(os.environ["MASTER_PORT"]))) if rank == "0" else None
print("rank", rank, "on", socket.gethostname(), "master", os.environ["MASTER_ADDR"])
if rank == "0":
    listener.accept()[0].sendall(b"hello")
else:
    for _ in range(300):
        try:
            link = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), 5)
            break
        except OSError:
            time.sleep(0.1)
    print("heard", link.recv(5))
open(f"outputs/rank{rank}.txt", "w").write(rank)
"""
    given = config(script(code), nodes=2, distributed_job_config=PyTorchConfiguration(node_count=2))
    run = experiment.submit(given)
    assert run.wait_for_completion()["status"] == "Completed"
    logs = [run.get_logs()[f"user_logs/std_log_{rank}.txt"] for rank in (0, 1)]
    hosts = {log.split(" on ")[1].split()[0] for log in logs}
    assert len(hosts) == 2 and "heard b'hello'" in logs[1] and "master 10.77.0.1" in logs[0]
    assert {"outputs/rank0.txt", "outputs/rank1.txt"} <= set(run.get_file_names())


def test_a_run_is_cancelled_with_all_its_processes(
    experiment: Experiment, script: Callable[..., str], tmp_path: Path
) -> None:
    here = tmp_path / "here"
    code = f"import os, time; open({str(here)!r}, 'w').write('here\\n'); time.sleep(600)"
    run = experiment.submit(config(script(code)))
    until_written(here, seconds=SOON)
    assert family(f"AZUREML_RUN_ID={run.id}", [])
    run.cancel()
    until(lambda: run.get_status() == "Canceled", seconds=SOON)
    until(lambda: not family(f"AZUREML_RUN_ID={run.id}", []))


def test_a_run_that_ray_has_no_room_for_says_so_and_is_cancelled_at_once(
    experiment: Experiment, script: Callable[..., str], ray_cluster: RayCluster
) -> None:
    attached(experiment.workspace, ray_cluster, "large", "STANDARD_D4_V2")
    run = experiment.submit(config(script("print(1)"), target="large"))
    told = until(lambda: "Waiting for Ray" in _last_stage(run) and _last_stage(run), seconds=SOON)
    assert "it wants a node with 8 CPUs, and Ray has none that large among 3 nodes" in told
    run.cancel()
    until(lambda: run.get_status() == "Canceled", seconds=SOON)


def test_a_server_that_was_killed_finds_its_runs_again(
    experiment: Experiment, script: Callable[..., str], tmp_path: Path, ray_home: Home
) -> None:
    here, gate = tmp_path / "here", tmp_path / "gate"
    code = (
        f"import os, time; open({str(here)!r}, 'w').write('here\\n')\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.05)\nprint('the end')"
    )
    run = experiment.submit(config(script(code)))
    until_written(here, seconds=SOON)
    ray_home.kill_server()
    assert run.get_status() == "Running"
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_logs()["user_logs/std_log.txt"].count("the end") == 1


SLEEPER = """
import os, socket, time
rank = os.environ["RANK"]
if os.path.exists("outputs/before"):
    print("again on", socket.gethostname())
else:
    open({folder!r} + "/host" + rank, "w").write(socket.gethostname() + "\\n")
    if rank == "0":
        from azureml.core import Run
        open("outputs/before", "w").write("first try")
        Run.get_context().upload_file("outputs/before", "outputs/before")
    time.sleep(600)
"""


@pytest.mark.parametrize("retries", [0, 1])
def test_a_node_that_dies_fails_the_run_with_its_name_or_restarts_it(
    experiment: Experiment, script: Callable[..., str], tmp_path: Path, ray_cluster: RayCluster, retries: int
) -> None:
    code = SLEEPER.format(folder=str(tmp_path))
    given = config(script(code), nodes=2, distributed_job_config=PyTorchConfiguration(process_count=2, node_count=2))
    run = experiment.submit(given, properties={"lapis.retries": str(retries)})
    hosts = []
    for rank in (0, 1):
        until_written(tmp_path / f"host{rank}", seconds=SOON)
        hosts.append((tmp_path / f"host{rank}").read_text().strip())
    if retries:
        until(lambda: "outputs/before" in run.get_file_names(), seconds=SOON)
    killed = next(int(host[-1]) for host in hosts if not host.endswith("n1"))  # the first node is Ray's own head
    ray_cluster.kill_node(killed)
    try:
        run.wait_for_completion(raise_on_error=False)
        if retries:
            assert run.get_status() == "Completed", run.get_details().get("error")
            assert any(f"Node ray-n{killed} (10.77.0.1{killed}) died" in s["reason"] for s in run._view["stages"])
        else:
            assert run.get_status() == "Failed"
            assert f"Node ray-n{killed} (10.77.0.1{killed}) died: " in str(run.get_details()["error"])
    finally:
        ray_cluster.start_node(killed)


def test_an_address_that_does_not_answer_is_refused_at_once(
    workspace: Workspace, ray_cluster: RayCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ComputeTargetException, match="No Ray cluster answers at 10.77.0.11:9"):
        ComputeTarget.attach(workspace, "nobody", RayCompute.attach_configuration("10.77.0.11:9"))
    workspace.write_config()
    command = ["compute", "create", "by-hand", "--engine", "ray", "--address", ray_cluster.address]
    assert main([*command, "--server-address", "http://10.77.0.11:9"]) == 1
    assert "do not reach this server at http://10.77.0.11:9" in capfd.readouterr().err
    assert main(command) == 0
    assert f"on Ray at {ray_cluster.address}" in capfd.readouterr().out
    assert [target.name for target in ComputeTarget.list(workspace)] == ["by-hand", "ray"]


def _last_stage(run: Any) -> str:
    run.get_status()
    run.get_details()
    return str(run._view["stages"][-1]["reason"])


def test_a_service_answers_from_a_node_and_moves_to_another(
    workspace: Workspace, tmp_path: Path, ray_cluster: RayCluster
) -> None:
    (tmp_path / "score.py").write_text(
        "import os, socket\n"
        "def init():\n"
        "    global found\n"
        "    found = open(os.path.join(os.environ['AZUREML_MODEL_DIR'], 'model.txt')).read()\n"
        "def run(data): return [socket.gethostname(), found]\n"
    )
    (tmp_path / "model.txt").write_text("one")
    model = Model.register(workspace, str(tmp_path / "model.txt"), "there")
    service = Model.deploy(
        workspace, "there", [model], InferenceConfig("score.py"),
        AksWebservice.deploy_configuration(num_replicas=1), ComputeTarget(workspace, "ray"),
    )  # fmt: skip
    try:
        service.wait_for_deployment(show_output=True)
        host, found = service.run("")
        assert host.startswith("ray-n") and found == "one"
        (tmp_path / "model.txt").write_text("two")
        service.update(models=[Model.register(workspace, str(tmp_path / "model.txt"), "there")])
        service.wait_for_deployment()
        assert service.run("")[1] == "two"
        service.regen_key("Primary")
        assert service.run("")[1] == "two"
    finally:
        service.delete()
