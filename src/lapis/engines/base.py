"""What every engine promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from lapis.domain.launch import Recovery, Work

Handle = Mapping[str, Any]  # JSON: it is stored with the run, and is all that an engine needs to find a job again


class Can(StrEnum):
    """Powers that not every engine has: asked before launch, never guessed."""

    MULTI_NODE = "multi-node"
    CONTAINERS = "containers"
    PORTS = "ports"


class JobState(StrEnum):
    ALIVE = "alive"
    WAITING = "waiting"  # for the cluster to have room: `explain` says for what
    LOST = "lost"  # ended, or never heard of: the engine does not say how; the agent does
    GONE = "gone"  # with a node that died: another agent could not take over, and `explain` says why


NodeHandle = Mapping[str, Any]  # JSON: what an engine says of a node, and all that it needs to find it again


@dataclass(frozen=True)
class JobSpec:
    """What agents are to do. `id` names the job for ever.

    One agent for each of `nodes`, which gets an Assignment: the work, and its place. None given means one agent,
    wherever the engine likes.
    """

    id: str
    work: Work | Recovery
    nodes: tuple[NodeHandle, ...] = ()


class Engine(Protocol):
    """Turns a JobSpec into processes somewhere and says how they fare.

    An engine remembers nothing: the handle it returned is all it needs to find a job again, from another replica or
    after a restart.
    """

    can: ClassVar[frozenset[Can]]

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise if a compute target with these settings could never work: an address that nobody answers, say."""
        ...

    def lacks(self, shape: Mapping[str, Any]) -> str:
        """What the engine's machines are short of for a node of that many cores and GPUs; empty if nothing."""
        ...

    def start_node(self, node_id: str, number: int, shape: Mapping[str, Any]) -> NodeHandle:
        """Bring up a node of a cluster. Raises OSError if that cannot be done."""
        ...

    def stop_node(self, node: NodeHandle) -> None:
        """Let a node go. One already gone is not an error."""
        ...

    def launch(self, job: JobSpec) -> Handle:
        """Start the agents of `job` and return at once. Of a job that is alive, start those that are not."""
        ...

    def poll(self, handles: Sequence[Handle]) -> list[JobState]:
        """One question to the cluster for many jobs, answered in their order."""
        ...

    def stop(self, handle: Handle, *, hard: bool = False) -> None:
        """Ask the agents to end their job, or with `hard` end all its processes. One already gone is not an error."""
        ...

    def explain(self, handle: Handle) -> str:
        """What the cluster itself says about the job, for when the agent never spoke."""
        ...

    def warm(self) -> None:
        """Get ready, so that the first launch is as quick as the next. May do nothing."""
        ...

    def close(self) -> None:
        """Let go of what the engine itself holds. Jobs go on."""
        ...

    def left(self) -> dict[str, Handle]:
        """By job id, the handles of all jobs that something lies around of, whether they run or not."""
        ...

    def forget(self, job_id: str) -> None:
        """The job has ended and all it had is stored: remove what lies around. May be repeated."""
        ...
