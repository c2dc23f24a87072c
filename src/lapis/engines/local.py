"""The local engine: agent processes on this machine, one for each node of a run, which outlive the server."""

from __future__ import annotations

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from lapis.domain.launch import Assignment
from lapis.engines import nodes
from lapis.engines.base import Can, Handle, JobSpec, JobState, NodeHandle
from lapis.environments import containers
from lapis.errors import ComputeTargetException
from lapis.machine import json_files, mounts, own_sources, processes, whole_files

_LONGEST = 1024  # bytes of agent.json besides the folder's name
# Without site-packages: an agent needs the standard library only.
_FORK_SERVER = "import sys; sys.path[0] = sys.argv.pop(1); from lapis.agent.fork_server import main; main()"


class LocalEngine:
    can: ClassVar[frozenset[Can]] = frozenset({Can.MULTI_NODE, Can.PORTS})

    def __init__(self, root: str) -> None:
        self._root = root
        self._fork_server: subprocess.Popen[bytes] | None = None
        os.makedirs(root, exist_ok=True)

    def check(self, settings: Mapping[str, Any]) -> None:
        if settings:
            raise ComputeTargetException(f"The local engine takes no settings, not {', '.join(settings)}.")

    def lacks(self, shape: Mapping[str, Any]) -> str:
        return nodes.lacks(shape)

    def start_node(self, node_id: str, number: int, shape: Mapping[str, Any]) -> NodeHandle:
        return nodes.start(node_id, number, shape)

    def stop_node(self, node: NodeHandle) -> None:
        nodes.stop(node)

    def launch(self, job: JobSpec) -> Handle:
        """The first agent lives in the job's folder, each further one in a folder below it."""
        top = os.path.join(self._root, job.id)
        handles: Sequence[NodeHandle] = job.nodes or ({},)
        agents = []
        for number, node in enumerate(handles):
            folder = top if number == 0 else os.path.join(top, "nodes", str(number))
            place = replace(nodes.place(node), index=number, count=len(handles), head=top)
            agents.append(self.launch_one(folder, Assignment(job.work, place)))
        return {"job": job.id, "agents": agents}

    def launch_one(self, folder: str, assignment: Assignment) -> dict[str, Any]:
        """The agent of that folder: the one that is alive, or a new one."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        known = json_files.read(os.path.join(folder, "agent.json"))
        if known is not None and processes.alive(known["pid"], known["started"]):
            return known
        json_files.write(os.path.join(folder, "job.json"), assignment.to_json())
        about = os.path.join(folder, "agent.json")
        whole_files.reserve(about, _LONGEST + len(folder))  # an agent that nobody knows could not be stopped
        pid = self._fork_agent(folder)
        agent = {"pid": pid, "started": processes.started(pid), "folder": folder}
        whole_files.write_reserved(about, json.dumps(agent).encode())
        return agent

    def _fork_agent(self, folder: str) -> int:
        """A new agent for `folder`, from the fork server; a fork server that was killed is replaced."""
        for fresh in (False, True):
            if self._fork_server is None or fresh:
                self.close()
                self._fork_server = _start_fork_server()
            assert self._fork_server.stdin is not None and self._fork_server.stdout is not None
            try:
                self._fork_server.stdin.write(os.fsencode(folder) + b"\n")
                answer = self._fork_server.stdout.readline()
            except BrokenPipeError:
                continue
            if answer:
                return int(answer)
        raise OSError("the process that starts agents ended at once")

    def warm(self) -> None:
        mounts.clear_below(self._root)
        if self._fork_server is None:
            self._fork_server = _start_fork_server()

    def close(self) -> None:
        """Let the fork server go; the agents it forked stay."""
        if self._fork_server is None:
            return
        assert self._fork_server.stdin is not None and self._fork_server.stdout is not None
        self._fork_server.stdin.close()
        self._fork_server.stdout.close()
        self._fork_server.wait()
        self._fork_server = None

    def poll(self, handles: Sequence[Handle]) -> list[JobState]:
        """A job that has lost one of its agents is lost; whether that agent had told its verdict, the server knows."""
        return [JobState.ALIVE if _all_alive(_agents(handle)) else JobState.LOST for handle in handles]

    def stop(self, handle: Handle, *, hard: bool = False) -> None:
        """Hard: agents and keepers go together with what they started, so that nobody is left whom nobody knows."""
        if not hard:
            for agent in _agents(handle):
                processes.signal_process(agent["pid"], agent["started"], signal.SIGTERM)
            return
        if not handle:
            return
        started = [process for agent in _agents(handle) for process in (agent, *_processes(agent["folder"]))]
        living = [each["pid"] for each in started if processes.alive(each["pid"], each["started"])]
        processes.end_tree(f"AZUREML_RUN_ID={handle['job']}", living, grace=0.0)
        for runtime, name in _containers(_agents(handle)):
            containers.remove(runtime, name)  # what runs in one is not among our processes
        for agent in _agents(handle):
            mounts.detach_below(agent["folder"])

    def explain(self, handle: Handle) -> str:
        said = []
        for agent in _agents(handle):
            try:
                with open(os.path.join(agent["folder"], "agent.log"), errors="replace") as file:
                    said.append(file.read()[-2000:].strip())
            except FileNotFoundError:
                pass
        return "\n".join(filter(None, said))

    def left(self) -> dict[str, Handle]:
        found: dict[str, Handle] = {}
        for job_id in os.listdir(self._root):
            folder = os.path.join(self._root, job_id)
            below = os.path.join(folder, "nodes")
            folders = [folder, *(os.path.join(below, each) for each in sorted(_listed(below)))]
            agents = [json_files.read(os.path.join(each, "agent.json")) for each in folders]
            found[job_id] = {"job": job_id, "agents": [agent for agent in agents if agent is not None]}
        return found

    def forget(self, job_id: str) -> None:
        folder = os.path.join(self._root, job_id)
        mounts.detach_below(folder)
        if not _mounted_below(folder):  # what lies behind a mount is not the job's to remove
            shutil.rmtree(folder, ignore_errors=True)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _mounted_below(folder: str) -> bool:
    try:
        with open("/proc/self/mounts", "rb") as file:
            places = [line.split()[1].decode("unicode_escape") for line in file]
    except OSError:
        return False
    inside = os.path.realpath(folder) + os.sep
    return any(place.startswith(inside) for place in places)


def _agents(handle: Handle) -> list[Mapping[str, Any]]:
    """Of a handle that an older release wrote, the one agent that it is."""
    return list(handle["agents"]) if "agents" in handle else [handle] if handle else []


def _processes(folder: str) -> list[Mapping[str, Any]]:
    """The keepers and scripts that an agent started: one of each, or one for each rank."""
    records = [
        json_files.read(path) or {}
        for where in ("", "mpi", os.path.join("ranks", "*"))
        for path in glob.glob(os.path.join(glob.escape(folder), where, "process.json"))
    ]
    return [value for record in records for value in record.values() if isinstance(value, dict) and "pid" in value]


def _containers(agents: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    crews = [json_files.read(os.path.join(agent["folder"], "crew.json")) or {} for agent in agents]
    return [each["container"] for crew in crews for each in crew.get("members", ()) if each.get("container")]


def _start_fork_server() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-S", "-c", _FORK_SERVER, own_sources.folder()],
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,  # so that it and its agents outlive us, and Ctrl-C in a terminal passes them by
    )


def _environment() -> dict[str, str]:
    """Ours, without the user's token: an agent and its script have tokens of their own."""
    return {key: value for key, value in os.environ.items() if key not in ("LAPIS_TOKEN", "PYTHONPATH")}


def _all_alive(agents: Sequence[Mapping[str, Any]]) -> bool:
    return bool(agents) and all(processes.alive(agent["pid"], agent["started"]) for agent in agents)
