"""`lapis compute`: targets of a workspace, from the command line."""

from __future__ import annotations

import pytest

from lapis.sdk.compute.compute_target import ComputeTarget
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import until
from tests.cli.conftest import Lapis


def test_a_cluster_is_made_shown_changed_and_removed(lapis: Lapis, here: Workspace) -> None:
    empty = lapis("compute", "list")
    assert empty.status == 0 and "No compute targets" in empty.err
    made = lapis("compute", "create", "gpu", "--vm-size", "STANDARD_NC6", "--max-nodes", "4", "--tag", "team=a")
    assert (made.status, made.out) == (
        0, "Compute target 'gpu' is there: up to 4 nodes of size STANDARD_NC6, on the server's machine.\n",
    )  # fmt: skip
    assert ComputeTarget(here, "gpu").scale_settings.maximum_node_count == 4
    (row,) = lapis("compute", "list").out.splitlines()[1:]
    assert row.split() == ["gpu", "AmlCompute", "local", "STANDARD_NC6", "dedicated", "0", "0", "4", "team=a"]
    shown = lapis("compute", "show", "gpu").out
    assert "STANDARD_NC6: 6 cores, 56 GB, 1 GPUs" in shown and "0 to 4" in shown
    changed = lapis("compute", "update", "gpu", "--max-nodes", "2", "--idle-seconds", "5", "--json").json
    assert (changed["max_nodes"], changed["idle_seconds"], changed["nodes"]) == (2, 5, [])
    assert lapis("compute", "delete", "gpu").out == "Deleted compute target 'gpu'.\n"
    gone = lapis("compute", "show", "gpu")
    assert gone.status == 1 and "No compute target named 'gpu'" in gone.err


def test_nodes_are_shown_with_their_run_and_can_be_preempted(lapis: Lapis, here: Workspace, script: object) -> None:
    assert lapis("compute", "create", "spot", "--low-priority").status == 0
    nothing = lapis("compute", "preempt", "spot")
    assert nothing.status == 1 and "has no node that runs something" in nothing.err
    folder = script("import time; time.sleep(600)")  # type: ignore[operator]
    run = Experiment(here, "trial").submit(ScriptRunConfig(folder, script="train.py", compute_target="spot"))
    node = until(lambda: next((n for n in lapis("compute", "show", "spot", "--json").json["nodes"] if n["run_id"]), {}))
    assert node["run_id"] == run.id and node["id"] in lapis("compute", "show", "spot").out
    assert lapis("compute", "preempt", "spot", "--node", node["id"]).out == (
        f"Node {node['id']} of 'spot' was preempted.\n"
    )
    refused = lapis("compute", "delete", "spot")
    assert refused.status == 1 and "has 1 runs that have not ended" in refused.err
    run.cancel()
    until(lambda: run.get_status() == "Canceled")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--vm-size", "STANDARD_NC7"], 1, "no VM size 'STANDARD_NC7'"),
        (["--min-nodes", "3", "--max-nodes", "2"], 1, "cannot have 3 to 2 nodes"),
        (["--engine", "slurm"], 2, "'slurm' is no engine. Known: local, ray"),
        (["--engine", "ray"], 2, "given by its address"),
        (["--address", "10.0.0.5:6379"], 2, "not with --engine local"),
        (["--engine", "ray", "--address", "10.0.0.5:6379", "--min-nodes", "1"], 2, "Ray's autoscaler decides"),
        (["--engine", "ray", "--address", "nowhere"], 1, "given by its address"),
    ],
)
def test_a_target_that_cannot_be_is_refused(
    lapis: Lapis, here: Workspace, arguments: list[str], status: int, says: str
) -> None:
    said = lapis("compute", "create", "new", *arguments)
    assert said.status == status and says in said.err
    assert ComputeTarget.list(here) == []


def test_an_update_says_what_changes(lapis: Lapis, here: Workspace) -> None:
    lapis("compute", "create", "cpu")
    assert "say what changes" in lapis("compute", "update", "cpu").err
