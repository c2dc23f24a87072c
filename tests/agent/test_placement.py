"""Who does what where: the variables that tell each process of a distributed run its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lapis.agent.placement import Rank, ports_needed, ranks
from lapis.domain.job import Plain, PyTorch, TensorFlow


def node(number: int, *ports: int) -> dict[str, Any]:
    return {"name": f"node-{number}", "address": f"host{number}", "ports": list(ports)}


def tensorflow(workers: int, servers: int, count: int) -> list[Rank]:
    distribution = TensorFlow(workers, servers)
    needed = [ports_needed(distribution, count, number) for number in range(count)]
    return ranks(distribution, [node(number, *range(2222, 2222 + needed[number])) for number in range(count)])


def test_tf_config_is_written_as_azure_documents_it() -> None:
    placed = tensorflow(workers=3, servers=2, count=5)
    assert placed[3].variables["TF_CONFIG"] == json.dumps(
        {
            "cluster": {
                "ps": ["host3:2222", "host4:2222"],
                "worker": ["host0:2222", "host1:2222", "host2:2222"],
            },
            "task": {"type": "ps", "index": 0},
            "environment": "cloud",
        }
    )


def test_without_parameter_servers_tf_config_has_workers_only() -> None:
    first, second = tensorflow(workers=2, servers=0, count=2)
    assert json.loads(first.variables["TF_CONFIG"]) == {
        "cluster": {"worker": ["host0:2222", "host1:2222"]},
        "task": {"type": "worker", "index": 0},
        "environment": "cloud",
    }
    assert json.loads(second.variables["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}


def test_parameter_servers_share_the_nodes_of_the_workers_and_are_the_last_ranks() -> None:
    placed = tensorflow(workers=2, servers=1, count=2)
    assert [(rank.name, rank.node, rank.serves) for rank in placed] == [
        ("worker 0", 0, False),
        ("worker 1", 1, False),
        ("ps 0", 0, True),
    ]
    assert json.loads(placed[0].variables["TF_CONFIG"])["cluster"]["ps"] == ["host0:2223"]


def test_the_names_of_the_older_service_are_set_too() -> None:
    variables = tensorflow(workers=2, servers=1, count=2)[2].variables
    assert variables["AZ_BATCHAI_PS_HOSTS"] == "host0:2223"
    assert variables["AZ_BATCHAI_WORKER_HOSTS"] == "host0:2222,host1:2222"
    assert (variables["AZ_BATCHAI_TASK_TYPE"], variables["AZ_BATCHAI_TASK_INDEX"]) == ("ps", "0")


def test_every_process_of_pytorch_knows_its_place() -> None:
    placed = ranks(PyTorch(4), [node(0, 6105), node(1, 7000)])
    assert [_place(rank) for rank in placed] == [
        ("0", "0", "0", "2", "4"),
        ("1", "1", "0", "2", "4"),
        ("2", "0", "1", "2", "4"),
        ("3", "1", "1", "2", "4"),
    ]
    assert {(r.variables["MASTER_ADDR"], r.variables["MASTER_PORT"]) for r in placed} == {("host0", "6105")}
    assert placed[3].variables["AZ_BATCHAI_PYTORCH_INIT_METHOD"] == "tcp://host0:6105"


@pytest.mark.parametrize(("processes", "spread"), [(5, [2, 2, 1]), (4, [2, 1, 1]), (3, [1, 1, 1]), (None, [1, 1, 1])])
def test_processes_that_cannot_be_divided_are_spread_as_evenly_as_can_be(
    processes: int | None, spread: list[int]
) -> None:
    placed = ranks(PyTorch(processes), [node(0, 1), node(1, 2), node(2, 3)])
    assert [sum(1 for rank in placed if rank.node == number) for number in range(3)] == spread
    assert [rank.variables["RANK"] for rank in placed] == [str(number) for number in range(sum(spread))]


def test_plain_nodes_know_their_neighbours() -> None:
    first, second = ranks(Plain(), [node(0, 6105), node(1, 7000)])
    assert first.variables["AZ_BATCH_HOST_LIST"] == second.variables["AZ_BATCH_HOST_LIST"] == "host0,host1"
    assert first.variables["AZ_BATCH_MASTER_NODE"] == second.variables["AZ_BATCH_MASTER_NODE"] == "host0:6105"
    assert (first.name, second.name) == ("node 0", "node 1")


def _place(rank: Rank) -> tuple[str, ...]:
    names = ("RANK", "LOCAL_RANK", "NODE_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE")
    return tuple(rank.variables[name] for name in names)
