"""A deployed service as a value: what is kept of it, how that is written and read, and how it fares.

A service has versions (an endpoint several, any other one, whose name is empty). A version has the revision that is
wanted and, while that one is not ready, the revision that still serves: each in a slot. Nothing here is changed in
place; `service_moves` says what becomes of a service when something happens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Mapping, NamedTuple, Sequence

from lapis.domain.run import check_labels, with_properties
from lapis.domain.service_content import Content
from lapis.domain.service_settings import ServiceSettings
from lapis.domain.values import Value
from lapis.errors import WebserviceException

SERVICE_RUN = "lapis.service"  # the type of the runs that services live in
EXPERIMENT = "~services"  # where these runs are kept: no experiment of a user can have such a name

STARTING, READY, BROKEN = "starting", "ready", "failed"  # of a slot
HEALTHY, TRANSITIONING, UNHEALTHY, FAILED = "Healthy", "Transitioning", "Unhealthy", "Failed"  # as Azure tells it

_NAME = re.compile(r"[a-z]([a-z0-9-]{1,30}[a-z0-9])")
_VERSION = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_-]{0,30}[a-zA-Z0-9])?")


class Labels(NamedTuple):
    """What users say of a service or a version."""

    description: str | None = None
    tags: Mapping[str, str | None] = {}
    properties: Mapping[str, str] = {}

    def with_tags(self, more: Mapping[str, str | None], without: Sequence[str] = ()) -> Labels:
        tags = {**self.tags, **check_labels("tags", more, self.tags)}
        return self._replace(tags={key: value for key, value in tags.items() if key not in without})

    def with_properties(self, whose: str, more: Mapping[str, str]) -> Labels:
        """Those that are set stay as they are."""
        return self._replace(properties=with_properties(whose, self.properties, check_labels("properties", more)))


@dataclass(frozen=True)
class Slot(Value):
    """A revision and how far it is. It lives in one run after the other."""

    revision: int
    content: Content
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    state: str = STARTING
    restart_at: float | None = None  # when it is to be started; None: it was
    run: str | None = None  # the newest of its runs; None while the next one is yet to be started
    runs: tuple[str, ...] = ()  # the last of them
    restarts: int = 0
    ready_at: float | None = None
    why: str | None = None  # it had to be started again
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Version(Value):
    port: int
    place: str  # a name for what its fronts share on disk, so that one can hand over to the next
    traffic: int  # percent of the requests that were asked for; the default version gets what is left
    wanted: Slot
    serving: Slot | None = None
    address: str | None = None  # None: it cannot be reached yet
    is_control: bool = True
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> Labels:
        return Labels(self.description, self.tags, self.properties)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What serves before what is to serve."""
        return (self.wanted,) if self.serving is None else (self.serving, self.wanted)

    @property
    def runs(self) -> list[str]:
        """Those that it lives in now."""
        return [slot.run for slot in self.slots if slot.run is not None]


@dataclass(frozen=True)
class Leaving(Value):
    """A run of an earlier revision, which is to end."""

    run: str
    cancel_at: float | None = None  # None: not before `until` says so
    until: str | None = None  # the version that is to be ready first


@dataclass(frozen=True)
class ServiceRecord(Value):
    id: str
    workspace_id: str
    name: str
    created_at: float
    updated_at: float
    kind: str
    sealed: str = field(repr=False)  # its keys
    versions: Mapping[str, Version]
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    target: str | None = None  # None: the server's own machine
    gateway: str = ""  # the version at which requests come in
    default: str = ""  # the version that gets the requests which the others do not
    leaving: tuple[Leaving, ...] = ()
    deleting: bool = False
    created_by: str | None = None
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> Labels:
        return Labels(self.description, self.tags, self.properties)

    @property
    def uses_keys(self) -> bool:
        return self.settings.uses_keys(self.kind)

    @property
    def uses_tokens(self) -> bool:
        return self.settings.uses_tokens(self.kind)

    @property
    def slots(self) -> list[Slot]:
        return [slot for version in self.versions.values() for slot in version.slots]

    def version(self, name: str) -> Version:
        found = self.versions.get(name)
        if found is None:
            known = ", ".join(filter(None, self.versions)) or "none: it is no AksEndpoint"
            raise WebserviceException(f"Service '{self.name}' has no version '{name}'. Known: {known}.")
        return found


# -- its names


def check_service_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise WebserviceException(
            f"Service name {name!r} cannot be used. A name is 3 to 32 lower-case letters, digits and dashes, begins "
            "with a letter and does not end with a dash."
        )
    return name


def check_version_name(name: Any) -> str:
    if not isinstance(name, str) or not _VERSION.fullmatch(name):
        raise WebserviceException(
            f"Version name {name!r} cannot be used. A name is 1 to 32 letters, digits, dashes and underscores, and "
            "begins and ends with a letter or a digit."
        )
    return name


# -- how it fares


def state_of(wanted: Slot, alive: bool) -> str:
    """Azure's word for a revision. `alive`: its front has spoken a moment ago, and has a replica that answers."""
    if wanted.state == BROKEN:
        return FAILED
    if wanted.state == READY:
        return HEALTHY if alive else UNHEALTHY
    return TRANSITIONING


def worst(states: Sequence[str]) -> str:
    """The word for an endpoint: that of the version which fares worst."""
    return max(states, key=(HEALTHY, TRANSITIONING, UNHEALTHY, FAILED).index) if states else TRANSITIONING
