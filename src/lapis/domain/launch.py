"""What the server adds to a job for one launch (`Launch`), and where an agent does its part of it (`Place`).

An engine gets `Work`, which is the job and the launch, or a `Recovery`; it gives each agent an `Assignment`, which is
that and the agent's place. The assignment is the agent's job.json.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Mapping

from lapis.domain import limits
from lapis.domain.job import Job
from lapis.domain.tree import Tree
from lapis.domain.values import SET_BY_SERVER, Kept, Value, at_most, within

_PATH = at_most(4096)


@dataclass(frozen=True)
class WorkspaceName(Value):
    id: str
    name: str = ""
    subscription_id: str = ""
    resource_group: str = ""


@dataclass(frozen=True)
class ExperimentName(Value):
    id: str
    name: str


@dataclass(frozen=True)
class FrontLaunch(Value):
    """What goes along when the front of a service is launched, and is stored with no run."""

    live: Mapping[str, Any]  # who may ask and who else answers, as it is told again whenever it changes
    mark: str  # of `live`
    lock: Mapping[str, Any] | None = None  # the front's own environment, where Lapis is not installed


@dataclass(frozen=True)
class Launch(Value):
    """What the server adds for one launch of a run."""

    run_id: str
    workspace: WorkspaceName
    experiment: ExperimentName
    server: str
    agent_token: str
    run_token: str
    run_token_expires: float
    code: Tree  # the files of its snapshot
    root_id: str | None = None
    address_file: str | None = None  # says where the server went
    blobs: str | None = None  # the server's folder of them, where the agent may see it
    packs: tuple[str, ...] = ()  # which packs there to look into
    number: int = 1  # of the launch: whoever comes later finds what the earlier agents left
    attempt: int = 0  # how often the run had to begin anew
    web: Mapping[str, str] = field(default_factory=dict)  # settings for fetching from the network
    lock: Mapping[str, Any] | None = None  # of its environment, as environments/values.py writes it
    environments: str | None = None  # the folder where they are built
    front: FrontLaunch | None = None
    cancel: bool = False  # it was asked to stop before: nothing is to be started
    verdict: Mapping[str, Any] | None = None  # its processes were ended: only bring in what they left, and tell this


@dataclass(frozen=True)
class Container(Value):
    image: str
    options: tuple[str, ...] = ()
    environment: str | None = None  # the folder of packages that are used inside


@dataclass(frozen=True)
class Work(Value):
    """A job and its launch: what an agent is to do, on whichever node."""

    TAG = ("kind", "script")
    job: Job
    launch: Launch
    container: Container | None = None  # known once the agent has entered the environment
    mpirun: str | None = None  # the same, for jobs that MPI starts

    def elsewhere(self, server: str | None) -> Work:
        """For a machine that has no disk in common with the server."""
        launch = replace(self.launch, blobs=None)
        return replace(self, launch=replace(launch, server=server, address_file=None) if server else launch)


@dataclass(frozen=True)
class Owner(Kept):
    """The process that an interactive run lives in. Where it writes follows from the run: domain/interactive.py."""

    host: str = ""
    pid: int = field(default=0, metadata=within(0, 2**31))
    started: str | None = None  # tells it from a later process with the same pid
    seen_from: str = field(default="", metadata=at_most(limits.NAME))  # the numbering that its pid belongs to
    journal: str = field(default="", metadata=_PATH)  # this and the next: earlier releases tell, and nobody looks
    spool: str = field(default="", metadata=_PATH)
    stream: str = field(default="journal", metadata=at_most(128))
    wrong: tuple[str, ...] = field(default=(), metadata=SET_BY_SERVER)


@dataclass(frozen=True)
class Recovery(Value):
    """Bring in what an interactive run left on disk when its process went away."""

    TAG = ("kind", "recover")
    run_id: str
    workspace_id: str
    server: str
    agent_token: str
    owner: Owner
    journal: str  # of the server's own home, and no path that a client named
    spool: str
    address_file: str | None = None

    def elsewhere(self, server: str | None) -> Recovery:
        return replace(self, server=server, address_file=None) if server else self


@dataclass(frozen=True)
class Place(Value):
    """The node that one agent of a run has."""

    index: int = 0
    count: int = 1
    head: str | None = None  # the folder of the first agent; None: this node does not see it
    name: str = ""
    address: str = ""
    network: str = ""  # a namespace of its own; empty: the machine's
    gpus: tuple[int, ...] | None = None  # None: whatever the machine has


@dataclass(frozen=True)
class Assignment(Value):
    """job.json: what one agent is given."""

    work: Work | Recovery
    place: Place = field(default_factory=Place)
