"""What is asked for when models are deployed: a new service, a change of one. It comes from outside (see values.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from lapis.domain import limits
from lapis.domain.job import WantedEnvironment
from lapis.domain.service_content import Origin
from lapis.domain.service_settings import KINDS, Keys, ServiceSettings
from lapis.domain.values import Value, at_most, one_of

_NAME = at_most(limits.NAME)
_MANY = at_most(limits.LABELS)


@dataclass(frozen=True)
class NewContent(Value):
    """What is to be served; models are named by name:version, or by a name for their newest version."""

    models: tuple[str, ...] = field(default=(), metadata=_MANY)
    snapshot_id: str | None = field(default=None, metadata=_NAME)
    entry_script: str | None = None  # its path in the snapshot; None: the server knows how to serve such a model
    folder: str | None = None  # what the source folder is called
    python: str | None = None
    environment: WantedEnvironment | None = None  # where packages are to be installed
    environment_variables: Mapping[str, str] = field(default_factory=dict, metadata=_MANY)
    definition: Mapping[str, Any] | None = None  # of the environment, for showing
    notices: tuple[str, ...] = field(default=(), metadata=_MANY)
    description: str | None = None
    origin: Origin | None = None


@dataclass(frozen=True)
class NewCode(Value):
    """Another snapshot, entry script and folder, all else the same."""

    snapshot_id: str | None = field(default=None, metadata=_NAME)
    entry_script: str | None = None
    folder: str | None = None


@dataclass(frozen=True)
class NewService(Value):
    """Served is what `content` says, or an image, or the same as another service."""

    name: str = field(metadata=_NAME)
    kind: str = field(metadata=one_of(*KINDS))
    content: NewContent | None = None
    image: str | None = field(default=None, metadata=_NAME)  # name:version
    like: str | None = field(default=None, metadata=_NAME)  # the name of a service
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    keys: Keys = field(default_factory=Keys, repr=False)
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    properties: Mapping[str, str] = field(default_factory=dict, metadata=_MANY)
    target: str | None = field(default=None, metadata=_NAME)
    version: str = field(default="", metadata=_NAME)  # the first one of an endpoint
    overwrite: bool = False
    created_by: str | None = field(default=None, metadata=_NAME)


@dataclass(frozen=True)
class ServiceChange(Value):
    """Of a service, or of a version of an endpoint: what is given changes, the rest stays."""

    content: NewContent | None = None
    models: tuple[str, ...] | None = field(default=None, metadata=_MANY)  # others with the same code
    image: str | None = field(default=None, metadata=_NAME)
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    description: str | None = None
    tags: Mapping[str, str | None] | None = field(default=None, metadata=_MANY)  # in place of those that there are
    add_tags: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    remove_tags: tuple[str, ...] = field(default=(), metadata=_MANY)
    properties: Mapping[str, str] = field(default_factory=dict, metadata=_MANY)
    is_default: bool | None = None
    is_control: bool | None = None
    code: NewCode | None = None
    reload: bool = False  # the same again


@dataclass(frozen=True)
class NewKey(Value):
    """Another key in the place of one of the two; None: the server makes one up."""

    which: str = field(metadata=_NAME)
    key: str | None = field(default=None, repr=False)
