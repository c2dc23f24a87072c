"""What an environment is on its way from a definition to a folder: a recipe, then a lock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lapis.domain.values import Value

LOCK_FORMAT = 1  # a change here builds every environment anew


@dataclass(frozen=True)
class Substitution:
    """Something else than what was asked for. `given` is empty where nothing has to be installed."""

    asked: str
    given: str
    reason: str

    def __str__(self) -> str:
        return f"{self.asked} -> {self.given or 'not installed'}: {self.reason}"


@dataclass(frozen=True)
class Submitter(Value):
    """The Python that wants the environment, and what it has installed of the packages that matter."""

    python: str = ""  # whole; empty: nobody knows
    packages: Mapping[str, str] = field(default_factory=dict)  # name -> version


NOBODY = Submitter()


@dataclass(frozen=True)
class Recipe:
    """What to install, in names that mean something today. The same definition and machine give the same recipe."""

    python: str  # the version of one of the machine's interpreters
    requirements: tuple[str, ...] = ()  # as pip takes them
    constraints: tuple[str, ...] = ()  # what old pins need beside them to still import
    optional: tuple[str, ...] = ()  # of the requirements: what Lapis adds, and leaves out where it fits no version
    if_possible: tuple[str, ...] = ()  # further constraints, given up where nothing satisfies them: numpy<1.24
    as_submitter: tuple[
        str, ...
    ] = ()  # the same, given up before those: numpy==1.26.4, as the submitting Python has it
    pip_options: tuple[str, ...] = ()  # of the definition: --extra-index-url ..., --find-links ...
    without: tuple[str, ...] = ()  # never to be installed, whoever requires it: azureml-core, another build of the same
    compiled: tuple[str, ...] = ()  # what has to be compiled on the machine: see horovod
    conda: tuple[str, ...] = ()  # what conda brings, its Python too; empty: conda is not needed
    channels: tuple[str, ...] = ()  # and from where
    shims: tuple[str, ...] = ()  # help for old scripts, by name: see old_code
    variables: Mapping[str, str] = field(default_factory=dict)  # that the packages need to behave as then
    substitutions: tuple[Substitution, ...] = ()
    notices: tuple[str, ...] = ()  # what else the user should know


@dataclass(frozen=True)
class Lock:
    """Exactly what is installed. Two locks with the same hash are the same environment."""

    python: str
    platform: str  # linux-x86_64
    packages: str  # a requirements file: every package pinned, with its hashes
    pip_options: tuple[str, ...] = ()
    shims: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    image: str = ""  # the id of the container's image; empty: no container
    interpreter: str = ""  # the Python inside it
    container: tuple[str, ...] = ()  # more options for the runtime
    compiled: tuple[str, ...] = ()
    conda: tuple[str, ...] = ()  # every conda package, exactly: name=version=build
    channels: tuple[str, ...] = ()
    # How it came about. Not part of the identity: two definitions may lead to the same packages.
    substitutions: tuple[Substitution, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        identity = [LOCK_FORMAT, self.python, self.platform, self.packages, self.pip_options, self.shims]
        identity += [[self.image, self.interpreter]] if self.image else []
        identity += [self.compiled] if self.compiled else []
        identity += [[self.conda, self.channels]] if self.conda else []
        text = json.dumps([*identity, sorted(self.variables.items())])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "variables": dict(self.variables), "hash": self.hash}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Lock:
        return Lock(
            python=data["python"],
            platform=data["platform"],
            packages=data["packages"],
            pip_options=tuple(data.get("pip_options") or ()),
            shims=tuple(data.get("shims") or ()),
            variables=dict(data.get("variables") or {}),
            image=data.get("image") or "",
            interpreter=data.get("interpreter") or "",
            container=tuple(data.get("container") or ()),
            compiled=tuple(data.get("compiled") or ()),
            conda=tuple(data.get("conda") or ()),
            channels=tuple(data.get("channels") or ()),
            substitutions=tuple(Substitution(**each) for each in data.get("substitutions") or ()),
            notices=tuple(data.get("notices") or ()),
        )
