"""A node's part in a distributed run: how it introduces itself, and the processes that it starts."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from lapis.agent import launch, prepare
from lapis.agent.crew import Crew, Member
from lapis.agent.hanging import SilenceWatch
from lapis.agent.placement import ports_needed, ranks
from lapis.domain import log_names
from lapis.domain.job import Distribution, Job, Mpi, TensorFlow
from lapis.domain.launch import Place, Work
from lapis.machine import json_files, ports

_IDLE_WORKER = 40.0  # seconds without CPU or a word: longer than TensorFlow 1 waits (30) before it looks again


def introduction(distribution: Distribution, place: Place, folder: str) -> dict[str, Any]:
    """What the other nodes need to know of this one. The same again when an agent takes over: they may know it."""
    count = ports_needed(distribution, place.count, place.index)
    before = launch.read(folder, "introduction.json") or {}
    made = {
        "index": place.index,
        "name": place.name or socket.gethostname(),
        "address": place.address or "127.0.0.1",
        "ports": ports.reserve(count, before.get("ports")),
    }
    json_files.write(os.path.join(folder, "introduction.json"), made)
    return made


def members(
    work: Work,
    distribution: Distribution,
    place: Place,
    nodes: Sequence[Mapping[str, Any]],
    code: str,
    folder: str,
    variables: Mapping[str, str],
) -> list[Member]:
    """The processes of this node, each with a log of its own."""
    if isinstance(distribution, Mpi):
        from lapis.agent import mpi

        return mpi.members(work, distribution, place, nodes, code, folder, variables)
    made = []
    for rank in ranks(distribution, nodes):
        if rank.node != place.index:
            continue
        argv, surroundings = prepare.command(work, code, folder, {**variables, **rank.variables})
        surroundings["LAPIS_MEMBER"] = f"{work.launch.run_id}:{rank.number}"
        surroundings["AZUREML_PROCESS_NAME"] = f"rank_{rank.number}"
        prepare.share_of_node(surroundings, place)
        own = os.path.join(folder, "ranks", str(rank.number))
        named = log_names.of_rank(rank.number)
        log = os.path.join(folder, log_names.file_of(named))
        made.append(Member(rank.name, own, log, named, argv, surroundings, code, rank.serves, network=place.network))
    return made


def let_go_of_idle_workers(
    job: Job, crew: Crew, watch: SilenceWatch, told: dict[str, Any], others: Sequence[Mapping[str, Any]]
) -> None:
    """Workers of TensorFlow that wait for orders never end by themselves: when worker 0 is done, they are too."""
    if not isinstance(job.distribution, TensorFlow) or not job.distribution.parameter_servers:
        return
    if crew.is_done("worker 0"):
        told["chief_is_done"] = True
    if not any(each.get("chief_is_done") for each in (told, *others)):
        return
    for each in crew.let_go([member for member in crew.members if watch.quiet(member) > _IDLE_WORKER]):
        with open(each.log, "a") as file:
            file.write(f"Lapis: {each.name} is ended: worker 0 is done, and it did nothing for {_IDLE_WORKER:g} s\n")


def clean(job: Job, folder: str) -> None:
    """Remove what lies outside of the node's own folder."""
    if isinstance(job.distribution, Mpi):
        from lapis.agent import mpi

        mpi.clean(folder)
