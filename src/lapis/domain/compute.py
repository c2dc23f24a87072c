"""Compute targets as values: what a cluster is, and which nodes it should have for the runs that wait."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Mapping, Sequence

from lapis.domain.limits import NODES, SECONDS, shown
from lapis.domain.vm_sizes import vm_size
from lapis.errors import ComputeTargetException

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{1,23}")
PRIORITIES = ("dedicated", "lowpriority")

# A node's life, in the words that list_nodes() shows.
PREPARING, IDLE, RUNNING, LEAVING, PREEMPTED = "preparing", "idle", "running", "leaving", "preempted"


@dataclass(frozen=True)
class Node:
    id: str
    number: int  # its place in the cluster: the lowest free one
    state: str
    since: float
    run_id: str | None = None
    place: Mapping[str, Any] = field(default_factory=dict)  # what the engine says of it: address, cores, handle

    def to_json(self) -> dict[str, Any]:
        return dict(self.__dict__, place=dict(self.place))


@dataclass(frozen=True)
class Cluster:
    """A compute target with nodes that come and go."""

    name: str
    vm_size: str
    max_nodes: int
    min_nodes: int = 0
    idle_seconds: float = 1800.0
    vm_priority: str = "dedicated"
    engine: str = "local"
    nodes: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Wants:
    """A run that waits for nodes of a cluster."""

    run_id: str
    nodes: int


@dataclass(frozen=True)
class Plan:
    start: int = 0  # how many nodes to bring up
    stop: tuple[Node, ...] = ()  # which to let go
    give: tuple[tuple[str, tuple[Node, ...]], ...] = ()  # to which run which nodes


def check_cluster(cluster: Cluster) -> Cluster:
    if not NAME.fullmatch(cluster.name):
        raise ComputeTargetException(
            f"A compute target cannot be named {cluster.name!r}: 2 to 24 letters, digits and dashes, a letter first."
        )
    vm_size(cluster.vm_size)
    check_scale(cluster.min_nodes, cluster.max_nodes, cluster.idle_seconds)
    if cluster.vm_priority not in PRIORITIES:
        raise ComputeTargetException(f"vm_priority cannot be {cluster.vm_priority!r}. Known: {', '.join(PRIORITIES)}.")
    return cluster


def check_scale(min_nodes: int, max_nodes: int, idle_seconds: float) -> None:
    for name, nodes in (("min_nodes", min_nodes), ("max_nodes", max_nodes)):
        if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes > NODES:
            raise ComputeTargetException(f"{name} must be a whole number of at most {NODES}, not {shown(nodes)}.")
    if not 0 <= min_nodes <= max_nodes or max_nodes < 1:
        raise ComputeTargetException(
            f"A cluster cannot have {min_nodes} to {max_nodes} nodes: min_nodes is 0 or more, max_nodes 1 or more, and "
            "min_nodes is not above max_nodes."
        )
    if isinstance(idle_seconds, bool) or not isinstance(idle_seconds, (int, float)) or not 0 <= idle_seconds <= SECONDS:
        raise ComputeTargetException(
            f"idle_seconds_before_scaledown must be between 0 and {SECONDS}, not {shown(idle_seconds)}."
        )


def plan(cluster: Cluster, waiting: Sequence[Wants], now: float) -> Plan:
    """What to do now. Runs get nodes in their order; a large one at the head is not overtaken by small ones.

    Pure: the same cluster, queue and time give the same plan.
    """
    idle = sorted((node for node in cluster.nodes if node.state == IDLE), key=lambda node: node.number)
    coming = sum(1 for node in cluster.nodes if node.state == PREPARING)
    give = []
    wanted = 0
    for run in waiting:
        if wanted == 0 and run.nodes <= len(idle):
            give.append((run.run_id, tuple(idle[: run.nodes])))
            idle = idle[run.nodes :]
        else:
            wanted += run.nodes
    alive = sum(1 for node in cluster.nodes if node.state in (PREPARING, IDLE, RUNNING))
    lacking = max(wanted - len(idle) - coming, cluster.min_nodes - alive, 0)
    start = min(lacking, min(cluster.max_nodes, NODES) - alive)  # a database may say anything
    stop = () if wanted else _not_needed(cluster, idle, alive, now)
    return Plan(max(start, 0), tuple(stop), tuple(give))


def free_numbers(cluster: Cluster, count: int) -> list[int]:
    taken = {node.number for node in cluster.nodes}
    return list(islice((number for number in itertools.count() if number not in taken), count))


def _not_needed(cluster: Cluster, idle: Sequence[Node], alive: int, now: float) -> list[Node]:
    """The last ones first, so that a cluster shrinks from its end; those beyond max_nodes at once."""
    tired = [node for node in idle if now - node.since >= cluster.idle_seconds]
    spare = max(0, alive - cluster.min_nodes)
    over = max(0, alive - cluster.max_nodes)
    chosen = sorted(tired, key=lambda node: -node.number)[:spare]
    for node in sorted(idle, key=lambda node: -node.number):
        if len(chosen) < over and node not in chosen:
            chosen.append(node)
    return chosen
