"""A node's part in a distributed run: how it introduces itself, and the processes that it starts."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from lapis.agent import prepare
from lapis.agent.crew import Member
from lapis.agent.placement import ports_needed, ranks


def introduction(job: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """What the other nodes need to know of this one."""
    count = ports_needed(job["distribution"], node["count"], node["index"])
    return {
        "index": node["index"],
        "name": node.get("name") or socket.gethostname(),
        "address": node.get("address") or "127.0.0.1",
        "ports": _free_ports(count),
        "state": None,
    }


def members(
    job: Mapping[str, Any],
    node: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
    code: str,
    folder: str,
    variables: Mapping[str, str],
) -> list[Member]:
    """The processes of this node, each with a log of its own."""
    if job["distribution"]["kind"] == "mpi":
        from lapis.agent import mpi

        return mpi.members(job, node, nodes, code, folder, variables)
    made = []
    for rank in ranks(job["distribution"], nodes):
        if rank.node != node["index"]:
            continue
        argv, surroundings = prepare.command(job, code, folder, {**variables, **rank.variables})
        surroundings["LAPIS_MEMBER"] = f"{job['run_id']}:{rank.number}"
        surroundings["AZUREML_PROCESS_NAME"] = f"rank_{rank.number}"
        _share_of_node(surroundings, node)
        place = os.path.join(folder, "ranks", str(rank.number))
        log = os.path.join(folder, f"std_log_{rank.number}.txt")
        named = f"user_logs/std_log_{rank.number}.txt"
        made.append(Member(rank.name, place, log, named, argv, surroundings, code, rank.serves))
    return made


def _share_of_node(surroundings: dict[str, str], node: Mapping[str, Any]) -> None:
    if node.get("gpus") is not None:
        surroundings.setdefault("CUDA_VISIBLE_DEVICES", ",".join(map(str, node["gpus"])))


def _free_ports(count: int) -> list[int]:
    """Held all at once while they are looked for, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("", 0))
        return [int(each.getsockname()[1]) for each in sockets]
