"""A job as a value: what was asked for. A client submits it, the run keeps it, and its agents find it in job.json.

What the server adds for a launch is not a part of it (see launch.py), so a client has no say in that. What comes in
from outside is read with `checked`, what lies in a database or in job.json with `from_json`: values.py says how they
differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Mapping, TypeVar, Union

from lapis.domain import limits
from lapis.domain.data import check_input_name, check_output_name, check_path_on_compute, check_reference_name
from lapis.domain.run import check_run_id
from lapis.domain.tree import check_path
from lapis.domain.values import SET_BY_SERVER, Kept, Value, at_most, one_of, passing, within
from lapis.errors import UserErrorException

_NAME = at_most(limits.NAME)
_PATH = at_most(limits.PATH)
_ON_COMPUTE = {**at_most(limits.PATH), **passing(check_path_on_compute)}


# -- what is run


@dataclass(frozen=True)
class InputName(Value):
    """A word of a command line that stands for the path of an input or an output."""

    input: str = field(metadata=_NAME)


Word = Union[str, InputName]


@dataclass(frozen=True)
class WantedEnvironment(Value):
    """Which environment the script runs in: its lock is stored by the server under that hash."""

    lock: str = field(metadata=_NAME)
    name: str | None = field(default=None, metadata=_NAME)
    said: tuple[str, ...] = ()  # what was substituted


@dataclass(frozen=True)
class Plain(Value):
    """The same script on every node."""

    TAG = ("kind", "plain")


@dataclass(frozen=True)
class Mpi(Value):
    TAG = ("kind", "mpi")
    processes_per_node: int = field(default=1, metadata=within(1, limits.PROCESSES))


@dataclass(frozen=True)
class TensorFlow(Value):
    TAG = ("kind", "tensorflow")
    workers: int = field(default=1, metadata=within(1, limits.PROCESSES))
    parameter_servers: int = field(default=0, metadata=within(0, limits.PROCESSES))


@dataclass(frozen=True)
class PyTorch(Value):
    TAG = ("kind", "pytorch")
    processes: int = field(default=0, metadata=within(0, limits.PROCESSES))  # in all; 0: one on each node
    backend: str = field(default="nccl", metadata=_NAME)


Distribution = Union[Plain, Mpi, TensorFlow, PyTorch]


# -- its data


@dataclass(frozen=True)
class InDatastore(Value):
    """A place in a datastore that is no folder of the server's machine."""

    datastore: str = field(metadata=_NAME)
    path: str = field(default="", metadata=_PATH)


@dataclass(frozen=True)
class DatasetInput(Value):
    TAG = ("type", "dataset")
    name: str = field(metadata=passing(check_input_name))
    mode: str = field(metadata=one_of("direct", "mount", "download"))
    definition: Mapping[str, Any]  # sources and steps: see domain/data.py
    path_on_compute: str | None = field(default=None, metadata=_ON_COMPUTE)
    dataset_id: str | None = field(default=None, metadata=_NAME)
    folders: Mapping[str, str | None] = field(default_factory=dict)  # of its datastores; None: not a folder


@dataclass(frozen=True)
class Reference(Value):
    """A place in a datastore, under a name of its own."""

    TAG = ("type", "reference")
    name: str = field(metadata=passing(check_reference_name))
    mode: str = field(metadata=one_of("mount", "download", "upload"))
    place: str | InDatastore  # text: a folder
    path_on_compute: str | None = field(default=None, metadata=_ON_COMPUTE)
    overwrite: bool = False


@dataclass(frozen=True)
class Registration(Value):
    """As what an output is registered when the run completes."""

    name: str = field(metadata=_NAME)
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Output(Value):
    TAG = ("type", "output")
    name: str = field(metadata=passing(check_output_name))
    mode: str = field(metadata=one_of("mount", "upload"))
    place: str | InDatastore
    definition: Mapping[str, Any]  # of the dataset that it becomes
    path_on_compute: str | None = field(default=None, metadata=_ON_COMPUTE)
    overwrite: bool = False
    globs: tuple[str, ...] = ()  # which of the written files go to the datastore; none: all
    glob: str | None = field(default=None, metadata=_PATH)  # which of them the dataset has
    made_by_script: bool = False  # a file or a folder, which the script makes itself; it finds it as a data reference
    register: Registration | None = None

    def of_run(self, run_id: str, other: str) -> Output:
        """The same output of another run: what is named after the one is named after the other."""
        return Output.from_json(json.loads(json.dumps(self.to_json()).replace(run_id, other)))


Input = Union[DatasetInput, Reference]
Stored = TypeVar("Stored", bound=Union[Reference, Output])


# -- a service


@dataclass(frozen=True)
class ModelFile(Value):
    path: str
    hash: str


@dataclass(frozen=True)
class ServedModel(Value):
    name: str
    version: int
    files: tuple[ModelFile, ...] = ()


@dataclass(frozen=True)
class NoCode(Value):
    """A model that is served without a scoring script."""

    runtime: str
    model: str  # which of its files


@dataclass(frozen=True)
class ServicePart(Value):
    """What the front of a service needs to know. The server fills it in."""

    id: str
    name: str
    version: str
    revision: int
    port: int
    place: str  # names the socket by which one revision hands over to the next
    sockets: str | None = None  # the folder of such sockets; None: the front runs on another machine
    host: str | None = None  # to listen on; None: the node's own address
    models: tuple[ServedModel, ...] = ()
    entry_script: str | None = None
    folder: str | None = None  # the name of the source folder; None: the script came alone
    no_code: NoCode | None = None
    # as serving/description.py takes them
    replicas: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    probe: Mapping[str, Any] = field(default_factory=dict)
    collect: bool = False
    app_insights: bool = False


# -- the whole


def _check_variables(variables: Mapping[str, str]) -> None:
    for name in variables:
        if not name or "=" in name or "\0" in name:
            raise UserErrorException(
                f"{name!r} is no name of a variable. A name is text without '=' and null characters."
            )


def _check_paths(paths: tuple[str, ...]) -> None:
    for path in paths:
        check_path(path)


@dataclass(frozen=True)
class Job(Kept):
    """What was asked for: the same at every launch of the run."""

    script: str | None = field(default=None, metadata=at_most(1024))
    command: str | tuple[str | InputName, ...] | None = None  # text: a line for the shell
    arguments: tuple[str | InputName, ...] = ()  # of the script
    python: str | None = field(default=None, metadata=_PATH)
    environment: WantedEnvironment | None = None  # None: `python` as it is
    environment_variables: Mapping[str, str] = field(default_factory=dict, metadata=passing(_check_variables))
    max_seconds: float | None = field(
        default=None, metadata=within(0, limits.SECONDS)
    )  # None or 0: as long as it takes
    framework: str | None = field(default=None, metadata=_NAME)
    communicator: str | None = field(default=None, metadata=_NAME)
    node_count: int = field(default=1, metadata=within(1, limits.NODES))
    distribution: Plain | Mpi | TensorFlow | PyTorch | None = None  # None: one process
    priority: int = field(default=0, metadata=within(0, limits.PRIORITY))  # the greater goes first
    watch: tuple[str, ...] = field(default=("logs",), metadata=passing(_check_paths))  # streamed while they grow
    collect_outputs: bool = True
    notices: tuple[str, ...] = ()  # what the user should know before the script's first line
    inputs: tuple[DatasetInput | Reference, ...] = ()
    outputs: tuple[Output, ...] = ()
    url_mirrors: str | None = None  # the submitter's LAPIS_URL_MIRRORS
    mount: str | None = field(default=None, metadata=_NAME)  # and LAPIS_MOUNT
    resumes: str | None = field(default=None, metadata=passing(check_run_id))  # the run whose outputs it goes on from
    service: ServicePart | None = field(default=None, metadata=SET_BY_SERVER)
    wrong: tuple[str, ...] = field(default=(), metadata=SET_BY_SERVER)  # what was stored and makes no sense

    def tables(self) -> list[str]:
        """The names of those inputs that are tabular datasets."""
        datasets = [each for each in self.inputs if isinstance(each, DatasetInput)]
        return [each.name for each in datasets if each.definition.get("type") == "tabular"]

    def fault(self) -> str:
        return "" if self.script or self.command else "has neither a script nor a command: there is nothing to run."


@dataclass(frozen=True)
class TrialTemplate(Value):
    """What each run of a hyperparameter search is, but for its parameters."""

    job: Job = field(default_factory=Job)
    definition: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    uses: tuple[tuple[str, ...], ...] = ()  # asset id, role, name in the run

    def fault(self) -> str:
        return "" if all(len(use) == 3 for use in self.uses) else "has uses that are not asset id, role and name."


@dataclass(frozen=True)
class Search(Kept):
    """A hyperparameter search: what it looks for (see domain/sweeps.py), and what it runs."""

    spec: Mapping[str, Any] = field(default_factory=dict)
    trial: TrialTemplate = field(default_factory=TrialTemplate)
    wrong: tuple[str, ...] = field(default=(), metadata=SET_BY_SERVER)

    def fault(self) -> str:
        return "lacks the trial." if self.trial == TrialTemplate() else ""
