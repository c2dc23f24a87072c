"""Who does what where: the processes of a distributed run, with the variables that tell each its place. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lapis.domain.job import Distribution, Plain, PyTorch, TensorFlow


@dataclass(frozen=True)
class Rank:
    number: int  # in the whole run: it names the log
    name: str  # as people call it: "worker 1"
    node: int
    variables: Mapping[str, str] = field(default_factory=dict)
    serves: bool = False  # a parameter server: it never ends by itself, and is ended when the others are done


def ports_needed(distribution: Distribution, nodes: int, node: int) -> int:
    """How many free ports a node has to bring along."""
    if isinstance(distribution, TensorFlow):
        return sum(1 for *_, where in _tensorflow_tasks(distribution, nodes) if where == node)
    return 1


def ranks(distribution: Plain | TensorFlow | PyTorch, nodes: Sequence[Mapping[str, Any]]) -> list[Rank]:
    """All processes of the run. `nodes` tell their address and the ports they have free."""
    if isinstance(distribution, TensorFlow):
        return _tensorflow(distribution, nodes)
    if isinstance(distribution, PyTorch):
        return _pytorch(distribution, nodes)
    return _plain(nodes)


def _plain(nodes: Sequence[Mapping[str, Any]]) -> list[Rank]:
    """The same script on every node; how they find each other is its own business."""
    return [Rank(number, f"node {number}", number, _batch(nodes, number)) for number in range(len(nodes))]


def _tensorflow(distribution: TensorFlow, nodes: Sequence[Mapping[str, Any]]) -> list[Rank]:
    """TF_CONFIG as Azure writes it, and the names that its predecessor used."""
    used = [0] * len(nodes)
    hosts: dict[str, list[str]] = {"ps": [], "worker": []}
    tasks = _tensorflow_tasks(distribution, len(nodes))
    for kind, _, node in tasks:
        hosts[kind].append(f"{nodes[node]['address']}:{nodes[node]['ports'][used[node]]}")
        used[node] += 1
    cluster = {kind: addresses for kind, addresses in hosts.items() if addresses}
    made = []
    for number, (kind, index, node) in enumerate(tasks):
        config = {"cluster": cluster, "task": {"type": kind, "index": index}, "environment": "cloud"}
        variables = {
            "TF_CONFIG": json.dumps(config),
            "AZ_BATCHAI_WORKER_HOSTS": ",".join(hosts["worker"]),
            "AZ_BATCHAI_PS_HOSTS": ",".join(hosts["ps"]),
            "AZ_BATCHAI_TASK_TYPE": kind,
            "AZ_BATCHAI_TASK_INDEX": str(index),
        }
        made.append(Rank(number, f"{kind} {index}", node, {**_batch(nodes, node), **variables}, serves=kind == "ps"))
    return made


def _tensorflow_tasks(distribution: TensorFlow, nodes: int) -> list[tuple[str, int, int]]:
    """(type, index, node): workers go round the nodes, and the parameter servers go on where they stopped."""
    workers = distribution.workers
    tasks = [("worker", index, index % nodes) for index in range(workers)]
    return tasks + [("ps", index, (workers + index) % nodes) for index in range(distribution.parameter_servers)]


def _pytorch(distribution: PyTorch, nodes: Sequence[Mapping[str, Any]]) -> list[Rank]:
    """What torch.distributed reads. Ranks of one node follow each other; the first nodes have one more if need be."""
    count = distribution.processes or len(nodes)
    made: list[Rank] = []
    for node in range(len(nodes)):
        here = count // len(nodes) + (node < count % len(nodes))
        for local in range(here):
            number = len(made)
            variables = {
                "MASTER_ADDR": nodes[0]["address"],
                "MASTER_PORT": str(nodes[0]["ports"][0]),
                "WORLD_SIZE": str(count),
                "RANK": str(number),
                "LOCAL_RANK": str(local),
                "LOCAL_WORLD_SIZE": str(here),
                "NODE_RANK": str(node),
                "AZ_BATCHAI_PYTORCH_INIT_METHOD": f"tcp://{nodes[0]['address']}:{nodes[0]['ports'][0]}",
                "AZ_BATCHAI_TASK_INDEX": str(number),
            }
            made.append(Rank(number, f"rank {number}", node, {**_batch(nodes, node), **variables}))
    return made


def _batch(nodes: Sequence[Mapping[str, Any]], node: int) -> dict[str, str]:
    """What Azure's batch service told every task about its neighbours."""
    head = f"{nodes[0]['address']}:{nodes[0]['ports'][0]}"
    return {
        "AZUREML_NODE_COUNT": str(len(nodes)),
        "AZ_BATCH_MASTER_NODE": head,
        "AZ_BATCHAI_MPI_MASTER_NODE": nodes[0]["address"],
        "AZ_BATCH_HOST_LIST": ",".join(each["address"] for each in nodes),
        "AZ_BATCH_NODE_ID": str(nodes[node]["name"]),
        "AZ_BATCH_IS_CURRENT_NODE_MASTER": "true" if node == 0 else "false",
    }


batch_variables = _batch
