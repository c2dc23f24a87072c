"""Nodes with a network of their own: LAPIS_NODE_NETWORK=namespaces, for root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.runconfig import MpiConfiguration, PyTorchConfiguration
from lapis.machine.processes import started
from lapis.testing import Home
from tests.e2e.test_distributed import STEADY, agents, ranks_running
from tests.needs import lacking, need


@pytest.fixture
def experiment(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Experiment]:
    need("ip", "iproute2")
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        lacking("network namespaces need root")
    monkeypatch.setenv("LAPIS_NODE_NETWORK", "namespaces")
    workspace = Workspace.from_config()
    cluster = ComputeTarget.create(workspace, "apart", AmlCompute.provisioning_configuration(max_nodes=2))
    yield Experiment(workspace, "trial")
    addresses = [node["ipAddress"] for node in cluster.list_nodes()]
    assert len(set(addresses)) == 2 and all(address.startswith("10.77.") for address in addresses)
    cluster.delete()
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split()
    names = {"lapis-" + "-".join(address.split(".")[2:]) for address in addresses}
    assert not names & set(left), "a node that is let go takes its network along"


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def finished(experiment: Experiment, folder: str, distribution: Any) -> Any:
    config = ScriptRunConfig(folder, "train.py", compute_target="apart", distributed_job_config=distribution)
    run: Any = experiment.submit(config)
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Completed", run.get_details()
    return run


def test_nodes_see_each_other_and_the_server_and_nothing_else(
    experiment: Experiment, script: Callable[..., str], tmp_path: Path
) -> None:
    code = """
import json, os, socket
from azureml.core import Run
rank, place = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(("0.0.0.0", place[1])) as server:
        server.accept()[0].sendall(socket.gethostname().encode())
else:
    while True:
        try:
            with socket.create_connection(place) as connection:
                met = connection.recv(100).decode()
            break
        except ConnectionRefusedError:
            pass
    try:
        socket.create_connection(("127.0.0.1", place[1]))
    except ConnectionRefusedError:
        print(json.dumps([met, socket.gethostname()]))
Run.get_context().tag(f"rank {rank}", "was here")  # asks the server
"""
    run = finished(experiment, script(code), PyTorchConfiguration("Gloo", process_count=2, node_count=2))
    met, own = json.loads(run._text_of("user_logs/std_log_1.txt").splitlines()[-1])
    assert met != own and met.startswith("lapis-") and own.startswith("lapis-")
    assert run.get_tags() == {"rank 0": "was here", "rank 1": "was here"}


def test_mpi_ranks_run_on_hosts_of_their_own(experiment: Experiment, script: Callable[..., str]) -> None:
    code = "import os, socket\nprint(os.environ['OMPI_COMM_WORLD_RANK'], socket.gethostname())\n"
    run = finished(experiment, script(code), MpiConfiguration(2, 2))
    lines = [run._text_of(f"user_logs/std_log_{rank}.txt").split() for rank in range(4)]
    assert [rank for rank, _ in lines] == ["0", "1", "2", "3"]
    hosts = [host for _, host in lines]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]


def test_a_node_that_dies_ends_the_run_on_the_other_one_too(
    experiment: Experiment, home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    config = ScriptRunConfig(
        script(STEADY), "train.py", arguments=[tmp_path], compute_target="apart",
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=4, node_count=2),
    )  # fmt: skip
    run: Any = experiment.submit(config)
    pids = ranks_running(tmp_path)
    assert os.stat(f"/proc/{pids[0]}/ns/net").st_ino != os.stat(f"/proc/{pids[3]}/ns/net").st_ino
    before = agents(home, run.id)
    keepers = [parent(pid) for pid in pids[2:]]
    for pid in (before[1], *keepers, *pids[2:]):
        os.kill(pid, signal.SIGKILL)
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    assert "rank 2: Its keeper was killed" in run.get_details()["error"]["error"]["message"]
    assert [pid for pid in pids if started(pid) is not None] == []
