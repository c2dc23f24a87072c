"""Clusters on this machine: found, made, scaled from zero, queued for, preempted, and refused with reasons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import ComputeTarget, Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeInstance, RemoteCompute
from azureml.core.compute_target import ComputeTargetException
from azureml.exceptions import UserErrorException
from lapis.testing import until, until_written

Make = Callable[..., AmlCompute]


@pytest.fixture
def cluster(workspace: Workspace) -> Make:
    def make(name: str = "cpu-cluster", **settings: Any) -> AmlCompute:
        settings = {"vm_size": "STANDARD_D2_V2", "max_nodes": 2, "idle_seconds_before_scaledown": 60, **settings}
        made: AmlCompute = ComputeTarget.create(workspace, name, AmlCompute.provisioning_configuration(**settings))
        return made

    return make


def waiting_script(tmp_path: Path, name: str) -> tuple[str, Path]:
    """A script that says it runs and then waits for a file."""
    gate, here = tmp_path / f"{name}.gate", tmp_path / f"{name}.here"
    code = (
        f"import os, time\nopen({str(here)!r}, 'w').write('here\\n')\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    )
    return code, gate


def test_a_cluster_is_made_once_and_found_again_as_what_it_is(workspace: Workspace, cluster: Make) -> None:
    with pytest.raises(ComputeTargetException, match="No compute target named 'cpu-cluster'.*Known: local"):
        ComputeTarget(workspace=workspace, name="cpu-cluster")
    cluster(vm_size="STANDARD_NC6", max_nodes=4).wait_for_completion(show_output=True, timeout_in_minutes=1)
    found = ComputeTarget(workspace, "cpu-cluster")
    assert type(found) is AmlCompute and type(workspace.compute_targets["cpu-cluster"]) is AmlCompute
    assert (found.type, found.provisioning_state, found.vm_size) == ("AmlCompute", "Succeeded", "STANDARD_NC6")
    status = found.get_status().serialize()
    assert status["currentNodeCount"] == 0 and status["allocationState"] == "Steady"
    assert status["scaleSettings"]["maxNodeCount"] == 4 and status["vmSize"] == "STANDARD_NC6"
    assert type(cluster(vm_size="STANDARD_NC6", max_nodes=4)) is AmlCompute, "the very same again is no error"
    with pytest.raises(ComputeTargetException, match="there already, with other settings"):
        cluster(max_nodes=3)


def test_nodes_come_for_a_run_and_leave_when_idle(
    experiment: Experiment, script: Callable[..., str], cluster: Make
) -> None:
    target = cluster(idle_seconds_before_scaledown=1)
    assert target.list_nodes() == []
    run = experiment.submit(ScriptRunConfig(script("print(1)"), script="train.py", compute_target=target))
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_details()["target"] == "cpu-cluster"
    until(lambda: not target.list_nodes())


def test_nodes_asked_for_always_are_there_without_a_run(cluster: Make) -> None:
    target = cluster(min_nodes=1)
    target.wait_for_completion(min_node_count=1, timeout_in_minutes=1)
    (node,) = target.list_nodes()
    assert node["nodeState"] == "idle" and node["ipAddress"].startswith("127.77.")
    target.update(min_nodes=2, max_nodes=3)
    target.wait_for_completion(timeout_in_minutes=1)
    assert len(target.list_nodes()) == 2
    assert len({node["ipAddress"] for node in target.list_nodes()}) == 2
    with pytest.raises(ComputeTargetException, match=r"update\(min_nodes=3\) brings them up"):
        target.wait_for_completion(min_node_count=3)


def test_a_run_that_waits_for_nodes_says_so_and_a_cluster_in_use_is_not_deleted(
    experiment: Experiment, script: Callable[..., str], cluster: Make, tmp_path: Path
) -> None:
    target = cluster(max_nodes=1)
    code, gate = waiting_script(tmp_path, "first")
    config = ScriptRunConfig(script(code), script="train.py", compute_target="cpu-cluster")
    first = experiment.submit(config)
    until_written(tmp_path / "first.here")
    second, third = experiment.submit(config), experiment.submit(config)
    told = until(
        lambda: "1 ahead of it; it wants a node, and 1 of 1 are busy" in _last_stage(third) and _last_stage(third)
    )
    assert "In the queue of 'cpu-cluster'" in told
    with pytest.raises(UserErrorException, match="has 3 runs that have not ended"):
        target.delete()
    assert {run.id for run in target.get_active_runs()} == {first.id, second.id, third.id}
    gate.touch()
    for run in (first, second, third):
        assert run.wait_for_completion()["status"] == "Completed"
    target.delete()
    with pytest.raises(ComputeTargetException):
        ComputeTarget(experiment.workspace, "cpu-cluster")


def _last_stage(run: Any) -> str:
    run.get_status()
    run.get_details()
    return str(run._view["stages"][-1]["reason"])


def test_a_preempted_run_starts_again_with_its_outputs_and_loses_nothing(
    experiment: Experiment, script: Callable[..., str], cluster: Make, tmp_path: Path
) -> None:
    target = cluster(vm_priority="lowpriority", max_nodes=1)
    gate, here = tmp_path / "gate", tmp_path / "here"
    code = f"""
import os, time
from azureml.core import Run
run = Run.get_context()
if os.path.exists("outputs/checkpoint"):
    print("resumed from", open("outputs/checkpoint").read())
    run.log("loss", 2)
else:
    run.log("loss", 1)
    run.flush()
    with open("outputs/checkpoint", "w") as file: file.write("epoch 1")
    print("first try", flush=True)
    run.upload_file("outputs/checkpoint", "outputs/checkpoint")
    open({str(here)!r}, "w").write("here\\n")
    time.sleep(600)
"""
    run = experiment.submit(ScriptRunConfig(script(code), script="train.py", compute_target=target))
    until_written(here)
    until(lambda: "first try" in run.get_logs().get("user_logs/std_log.txt", ""))
    workspace = experiment.workspace
    workspace._client.call("POST", f"{workspace._base}/computes/cpu-cluster/preempt", {})
    assert run.wait_for_completion()["status"] == "Completed"
    log = run.get_logs()["user_logs/std_log.txt"]
    assert log.count("first try") == 1 and "resumed from epoch 1" in log
    assert run.get_metrics()["loss"] == [1, 2]
    gate.touch()


def test_dedicated_nodes_are_not_preempted(workspace: Workspace, cluster: Make) -> None:
    cluster()
    with pytest.raises(ComputeTargetException, match="Only low-priority nodes"):
        workspace._client.call("POST", f"{workspace._base}/computes/cpu-cluster/preempt", {})


def test_a_machine_smaller_than_the_size_asked_for_is_told_with_the_run(
    experiment: Experiment, script: Callable[..., str], cluster: Make
) -> None:
    target = cluster(vm_size="Standard_ND96asr_v4")
    run = experiment.submit(ScriptRunConfig(script("print(1)"), script="train.py", compute_target=target))
    run.wait_for_completion()
    assert "96 cores and this machine has" in run.get_details()["warnings"][0]["message"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"max_nodes": None}, "max_nodes is needed"),
        ({"max_nodes": 0}, "cannot have 0 to 0 nodes"),
        ({"max_nodes": "3"}, "max_nodes must be a whole number"),
        ({"vm_size": "STANDARD_NC7"}, "no VM size 'STANDARD_NC7'"),
        ({"vm_priority": "spot"}, "vm_priority cannot be 'spot'"),
        ({"idle_seconds_before_scaledown": -1}, "must be between 0 and"),
        ({"name": "not a name"}, "cannot be named"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(cluster: Make, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ComputeTargetException, match=says):
        cluster(**settings)


def test_more_nodes_than_a_cluster_has_are_refused_at_once(
    experiment: Experiment, script: Callable[..., str], cluster: Make
) -> None:
    config = ScriptRunConfig(script("1"), script="train.py", compute_target=cluster(max_nodes=2))
    config.run_config.node_count = 3
    with pytest.raises(ComputeTargetException, match=r"asks for 3 nodes.*at most 2.*update\(max_nodes=3\)"):
        experiment.submit(config)
    assert list(experiment.get_runs()) == []


def test_a_compute_instance_is_this_machine(experiment: Experiment, script: Callable[..., str]) -> None:
    made = ComputeTarget.create(experiment.workspace, "mine", ComputeInstance.provisioning_configuration())
    assert made.get_status().state == "Running"
    run = experiment.submit(ScriptRunConfig(script("print(1)"), script="train.py", compute_target=made))
    assert run.wait_for_completion()["status"] == "Completed"


def test_machines_over_ssh_are_refused_with_what_to_do_instead(workspace: Workspace) -> None:
    configuration = RemoteCompute.attach_configuration(username="me", address="10.0.0.1", password="secret")
    with pytest.raises(NotImplementedError, match="Start a Ray node there"):
        ComputeTarget.attach(workspace, "remote", configuration)
