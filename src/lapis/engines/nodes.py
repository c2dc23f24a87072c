"""Nodes of a cluster that is rehearsed on one machine: an address and a share of the cores and GPUs for each."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from lapis.domain import settings
from lapis.domain.launch import Place
from lapis.machine import networks

_NETWORK = "127.77"  # addresses of the loopback device that are used by nobody else; no root, no set-up


def start(node_id: str, number: int, shape: Mapping[str, Any]) -> dict[str, Any]:
    """A node has an address of its own, so that what listens on one node is not found on another by mistake."""
    cluster = sum(node_id.rsplit("-", 1)[0].encode()) % 250  # nodes of different clusters rarely share an address
    network = {"address": f"{_NETWORK}.{cluster}.{number % 250 + 1}"}
    if settings.load().node_network == "namespaces":
        name, address = networks.start(cluster)
        network = {"address": address, "network": name}
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    return {
        "name": node_id,
        **network,
        "cores": _share(cores, int(shape["cores"]), number),
        "gpus": _share(gpus(), int(shape["gpus"]), number),
    }


def stop(node: Mapping[str, Any]) -> None:
    """A loopback address needs no device, so there is nothing to take down."""
    if node.get("network"):
        networks.stop(node["network"])


def place(node: Mapping[str, Any]) -> Place:
    """What the agent on a node that was started so has to know of it; of no node in particular, nothing."""
    gpus_of_node = node.get("gpus")
    return Place(
        name=node.get("name", ""),
        address=node.get("address", ""),
        network=node.get("network", ""),
        gpus=None if gpus_of_node is None else tuple(gpus_of_node),
    )


def lacks(shape: Mapping[str, Any]) -> str:
    cores, there = int(shape["cores"]), os.cpu_count() or 1
    missing = []
    if cores > there:
        missing.append(f"{cores} cores and this machine has {there}")
    if int(shape["gpus"]) > len(gpus()):
        missing.append(f"{shape['gpus']} GPUs and this machine has {len(gpus()) or 'none'}")
    return "; ".join(missing)


@cache
def gpus() -> tuple[int, ...]:
    """The numbers of this machine's GPUs."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ()
    try:
        listed = subprocess.run([command, "-L"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(range(sum(1 for line in listed.splitlines() if line.startswith("GPU "))))


def _share(everything: Iterable[int], wanted: int, number: int) -> list[int]:
    """`wanted` of them for node `number`, another share than its neighbour's as long as there are enough."""
    whole = list(everything)
    if not whole or wanted >= len(whole):
        return whole
    first = number * wanted % len(whole)
    return sorted((whole * 2)[first : first + wanted])
