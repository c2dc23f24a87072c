"""A node's part in a distributed run: how it introduces itself, and the processes that it starts."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from lapis.agent import launch, ports, prepare
from lapis.agent.crew import Member
from lapis.agent.placement import ports_needed, ranks


def introduction(job: Mapping[str, Any], node: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """What the other nodes need to know of this one. The same again when an agent takes over: they may know it."""
    count = ports_needed(job["distribution"], node["count"], node["index"])
    before = launch.read(folder, "introduction.json") or {}
    made = {
        "index": node["index"],
        "name": node.get("name") or socket.gethostname(),
        "address": node.get("address") or "127.0.0.1",
        "ports": ports.reserve(count, before.get("ports")),
    }
    path = os.path.join(folder, "introduction.json")
    with open(path + ".tmp", "w") as file:
        json.dump(made, file)
    os.replace(path + ".tmp", path)
    return made


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
        share_of_node(surroundings, node)
        place = os.path.join(folder, "ranks", str(rank.number))
        log = os.path.join(folder, f"std_log_{rank.number}.txt")
        named = f"user_logs/std_log_{rank.number}.txt"
        made.append(Member(rank.name, place, log, named, argv, surroundings, code, rank.serves))
    return made


def share_of_node(surroundings: dict[str, str], node: Mapping[str, Any]) -> None:
    """Only the GPUs that are this node's are seen."""
    if node.get("gpus") is not None:
        surroundings.setdefault("CUDA_VISIBLE_DEVICES", ",".join(map(str, node["gpus"])))


def clean(job: Mapping[str, Any], folder: str) -> None:
    """Remove what lies outside of the node's own folder."""
    if (job.get("distribution") or {}).get("kind") == "mpi":
        from lapis.agent import mpi

        mpi.clean(folder)
