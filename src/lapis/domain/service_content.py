"""What a service serves: which models, with which code or runtime, in which environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from lapis.domain.job import NoCode, WantedEnvironment
from lapis.domain.values import Value


@dataclass(frozen=True)
class ModelVersion(Value):
    """A version of a model, as it was when the service was deployed."""

    id: str  # name:version
    asset_id: str
    name: str
    version: int
    framework: str | None = None
    framework_version: str | None = None


@dataclass(frozen=True)
class Origin(Value):
    """Where the code was when it was sent."""

    entry_script: str
    cwd: str
    source_directory: str | None = None
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Content(Value):
    models: tuple[ModelVersion, ...] = ()
    snapshot_id: str | None = None
    entry_script: str | None = None  # its path in the snapshot; None: the server knows how to serve such a model
    folder: str | None = None  # what the source folder is called: scripts open paths that begin with it
    python: str | None = None
    environment: WantedEnvironment | None = None
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    definition: Mapping[str, Any] | None = None  # of the environment, for showing
    notices: tuple[str, ...] = ()
    description: str | None = None
    no_code: NoCode | None = None
    origin: Origin | None = None
    image: str | None = None  # the image of 2019's kind that it came from
