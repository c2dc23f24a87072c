"""MPI jobs: real `mpirun` on the head, which reaches the other nodes through their agents instead of ssh.

On every node but the head a small server of ours waits (mpi_node.py). mpirun calls our launcher (mpi_reach.py) where
it would call ssh; the launcher hands the command to that server, which starts MPI's daemon there. Each rank is started
through mpi_rank.py, which gives it a log of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from lapis.agent import prepare
from lapis.agent.crew import Member
from lapis.agent.placement import batch_variables
from lapis.agent.verdict import Verdict, killed, last_lines, of_rank
from lapis.domain import log_names
from lapis.domain.job import Mpi
from lapis.domain.launch import Place, Work
from lapis.errors import UserErrorException
from lapis.machine import json_files, open_mpi
from lapis.machine.open_mpi import MPIRUN

MPIRUN_LOG = "azureml-logs/mpirun.txt"
_FAILED_RANK = re.compile(r"Process name: \[.*,(\d+)|process rank (\d+)|MPI_ABORT was invoked on rank (\d+)")
_SIGNAL = re.compile(r"exited\s+on\s+signal\s+(\d+)")


def members(
    work: Work,
    distribution: Mpi,
    place: Place,
    nodes: Sequence[Mapping[str, Any]],
    code: str,
    folder: str,
    variables: Mapping[str, str],
) -> list[Member]:
    """mpirun on the head; on the others, the server that lets MPI in."""
    mpirun = work.mpirun
    if mpirun is None:
        raise UserErrorException("The agent was not told where environments are, and has found no mpirun.")
    each, index, network = distribution.processes_per_node, place.index, place.network
    told = {**variables, **batch_variables(nodes, index)}
    argv, surroundings = prepare.command(work, code, folder, told)
    surroundings.update(
        LAPIS_MEMBER=f"{work.launch.run_id}:mpi{index}",
        LAPIS_RANK_LOGS=folder,
        LAPIS_MPI_SECRET=_secret(work.launch.agent_token),
        LAPIS_MPI_NODES=json.dumps({_host(other): [other["address"], other["ports"][0]] for other in nodes[1:]}),
    )
    prepare.share_of_node(surroundings, place)
    # MPI keeps its session and its shared memory there: nodes that are on one machine must not share them.
    scratch = [temporary, memory] = list(_scratch(folder))
    surroundings.update(TMPDIR=temporary, LAPIS_MPI_MEMORY=memory)
    libraries = open_mpi.libraries(mpirun)  # for ranks that were compiled with another path to them
    if libraries is not None:
        found = [libraries, surroundings.get("LD_LIBRARY_PATH", "")]
        surroundings["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, found))
    first = index * each
    names = [log_names.of_rank(rank) for rank in range(first, first + each)]
    logs = {name: os.path.join(folder, log_names.file_of(name)) for name in names}
    own = os.path.join(folder, "mpi")
    if index == 0:
        command = _mpirun(mpirun, nodes, folder, each, network, argv)
        log = os.path.join(folder, "mpirun.txt")
        names_and_place = (MPIRUN, own, log, MPIRUN_LOG, command, surroundings, code)
        return [Member(*names_and_place, logs=logs, network=network, reserved=scratch)]
    command = [*_ours("mpi_node.py"), nodes[index]["address"], str(nodes[index]["ports"][0])]
    log, name = os.path.join(folder, "mpi_node.txt"), f"azureml-logs/mpi_node_{index}.txt"
    return [Member(f"node {index}", own, log, name, command, surroundings, code, True, logs, network, reserved=scratch)]


def blamed(member: Member, verdict: Verdict) -> Verdict:
    """mpirun only passes on that something failed: which rank it was, and its last lines, are worth more."""
    told = last_lines(member.log)
    found = _FAILED_RANK.search(told)
    if found is None or verdict.error is None:
        return verdict
    rank = int(next(filter(None, found.groups())))
    number = _SIGNAL.search(told)
    if number is not None:
        verdict = Verdict(verdict.state, killed(int(number[1])), {**verdict.error, "code": "Signal"})
    log = member.logs.get(log_names.of_rank(rank))  # none of ours: its node knows what it said
    return of_rank(verdict, rank, last_lines(log) if log else "")


def clean(folder: str) -> None:
    """Remove what MPI may have left behind outside of the node's own folder."""
    for path in (json_files.read(_scratch_file(folder)) or {}).values():
        shutil.rmtree(path, ignore_errors=True)


def _mpirun(
    mpirun: str, nodes: Sequence[Mapping[str, Any]], folder: str, each: int, network: str, argv: Sequence[str]
) -> list[str]:
    version = open_mpi.major_version(mpirun) or 0
    count = each * len(nodes)
    command = [mpirun, "--allow-run-as-root", "-np", str(count), "--bind-to", "none"]
    command += ["--map-by", f"ppr:{each}:node" + (":oversubscribe" if version >= 5 else "")]
    command += ["--oversubscribe"] if version < 5 else []
    if len(nodes) > 1:
        here = network or socket.gethostname()
        command += _across(nodes, folder, each, here, version)
        if version >= 5 or open_mpi.libraries(mpirun) is not None:  # where the nodes find the daemon
            command += ["--prefix", os.path.dirname(os.path.dirname(mpirun))]
    loopback = all(other["address"].startswith("127.") for other in nodes)
    command += _on_loopback(version) if loopback else []
    crowd = count if loopback or network else each  # that share this machine's cores
    if crowd > (os.cpu_count() or 1):
        command += ["--mca", "mpi_yield_when_idle", "1"]  # who waits for a message lets the others compute it
    return [*command, *_ours("mpi_rank.py"), *argv]


def _on_loopback(version: int) -> list[str]:
    """MPI takes each node for a machine of its own; here they share one."""
    settings = {"btl_tcp_if_include": "lo"}
    if version < 5:
        settings["oob_tcp_if_include"] = "lo"
    else:
        settings["coll"] = "^han"  # groups ranks by host name, and waits for ever where two nodes have the same
    return [word for name, value in settings.items() for word in ("--mca", name, value)]


def _across(nodes: Sequence[Mapping[str, Any]], folder: str, each: int, here: str, version: int) -> list[str]:
    hosts = os.path.join(folder, "own", "mpi_hosts")  # where the processes of all nodes see it, whenever it comes
    with open(hosts, "w") as file:
        names = [here, *(_host(other) for other in nodes[1:])]
        file.writelines(f"{name} slots={each}\n" for name in names)
    launcher = os.path.join(folder, "own", "mpi_reach")
    with open(launcher, "w") as file:  # mpirun wants one word
        file.write("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in _ours("mpi_reach.py")) + ' "$@"\n')
    os.chmod(launcher, 0o700)
    kind, shell = ("--prtemca", "plm_ssh") if version >= 5 else ("--mca", "plm_rsh")
    command = ["--hostfile", hosts, "--leave-session-attached", kind, f"{shell}_agent", launcher]
    return [*command, kind, f"{shell}_no_tree_spawn", "1"]


def _host(node: Mapping[str, Any]) -> str:
    """A name that no resolver knows, so that MPI does not take a node of this machine for this machine."""
    return f"lapis-node-{node['index']}"


def _ours(script: str) -> list[str]:
    """A script of this folder under the agent's own interpreter, without anything of the user's."""
    return [sys.executable, "-I", "-S", os.path.join(os.path.dirname(os.path.abspath(__file__)), script)]


def _secret(agent_token: str) -> str:
    """Known to the agents of this run alone."""
    return hashlib.sha256(f"mpi {agent_token}".encode()).hexdigest()


def _scratch(folder: str) -> tuple[str, str]:
    """For files and for shared memory. Short, as MPI makes sockets below them; and not to be guessed, as others share
    the place: which they are stands in a file, for whoever cleans up."""
    import tempfile

    found = json_files.read(_scratch_file(folder))
    if found is None:
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        found = {"files": tempfile.mkdtemp(prefix="lapis-mpi-"), "memory": tempfile.mkdtemp("", "lapis-mpi-", memory)}
        json_files.write(_scratch_file(folder), found)
    return found["files"], found["memory"]


def _scratch_file(folder: str) -> str:
    return os.path.join(folder, "mpi_scratch.json")
