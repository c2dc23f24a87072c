"""A deployed service as a value: what is kept of it, how that is written and read, and how it fares.

A service has versions (an endpoint several, any other one, whose name is empty). A version has the revision that is
wanted and, while that one is not ready, the revision that still serves: each in a slot. Nothing here is changed in
place; `service_moves` says what becomes of a service when something happens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Sequence

from lapis.domain.run import check_labels, with_properties
from lapis.domain.service_content import Content
from lapis.domain.service_settings import ServiceSettings
from lapis.errors import WebserviceException

SERVICE_RUN = "lapis.service"  # the type of the runs that services live in
EXPERIMENT = "~services"  # where these runs are kept: no experiment of a user can have such a name

STARTING, READY, BROKEN = "starting", "ready", "failed"  # of a slot
HEALTHY, TRANSITIONING, UNHEALTHY, FAILED = "Healthy", "Transitioning", "Unhealthy", "Failed"  # as Azure tells it

_NAME = re.compile(r"[a-z]([a-z0-9-]{1,30}[a-z0-9])")
_VERSION = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_-]{0,30}[a-zA-Z0-9])?")


@dataclass(frozen=True)
class Slot:
    """A revision and how far it is. It lives in one run after the other."""

    revision: int
    content: Content
    settings: ServiceSettings
    restart_at: float | None  # when it is to be started; None: it was
    state: str
    run: str | None  # the newest of its runs; None while the next one is yet to be started
    runs: tuple[str, ...]  # the last of them
    restarts: int
    ready_at: float | None
    why: str | None  # it had to be started again
    error: Mapping[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        return {
            "revision": self.revision,
            "content": self.content.to_json(),
            "settings": self.settings.to_json(),
            "restart_at": self.restart_at,
            "state": self.state,
            "run": self.run,
            "runs": list(self.runs),
            "restarts": self.restarts,
            "ready_at": self.ready_at,
            "why": self.why,
            "error": None if self.error is None else dict(self.error),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Slot:
        return cls(
            revision=body["revision"],
            content=Content.from_json(body["content"]),
            settings=ServiceSettings.from_json(body.get("settings") or {}),
            restart_at=body.get("restart_at"),
            state=body["state"],
            run=body.get("run"),
            runs=tuple(body.get("runs") or ()),
            restarts=body.get("restarts") or 0,
            ready_at=body.get("ready_at"),
            why=body.get("why"),
            error=body.get("error"),
        )


@dataclass(frozen=True)
class Labels:
    """What users say of a service or a version."""

    description: str | None
    tags: Mapping[str, str | None]
    properties: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {"description": self.description, "tags": dict(self.tags), "properties": dict(self.properties)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Labels:
        return cls(body.get("description"), body.get("tags") or {}, body.get("properties") or {})

    def with_tags(self, more: Mapping[str, str | None], without: Sequence[str] = ()) -> Labels:
        tags = {**self.tags, **check_labels("tags", more)}
        return replace(self, tags={key: value for key, value in tags.items() if key not in without})

    def with_properties(self, whose: str, more: Mapping[str, str]) -> Labels:
        """Those that are set stay as they are."""
        return replace(self, properties=with_properties(whose, self.properties, check_labels("properties", more)))


NO_LABELS = Labels(None, {}, {})


@dataclass(frozen=True)
class Version:
    port: int
    place: str  # a name for what its fronts share on disk, so that one can hand over to the next
    traffic: int  # percent of the requests that were asked for; the default version gets what is left
    wanted: Slot
    serving: Slot | None
    address: str | None  # None: it cannot be reached yet
    is_control: bool
    labels: Labels

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What serves before what is to serve."""
        return (self.wanted,) if self.serving is None else (self.serving, self.wanted)

    @property
    def runs(self) -> list[str]:
        """Those that it lives in now."""
        return [slot.run for slot in self.slots if slot.run is not None]

    def to_json(self) -> dict[str, Any]:
        return {
            "port": self.port,
            "place": self.place,
            "traffic": self.traffic,
            "wanted": self.wanted.to_json(),
            "serving": None if self.serving is None else self.serving.to_json(),
            "address": self.address,
            "is_control": self.is_control,
            **self.labels.to_json(),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Version:
        return cls(
            port=body["port"],
            place=body["place"],
            traffic=body["traffic"],
            wanted=Slot.from_json(body["wanted"]),
            serving=None if body.get("serving") is None else Slot.from_json(body["serving"]),
            address=body.get("address"),
            is_control=body.get("is_control", True),
            labels=Labels.from_json(body),
        )


@dataclass(frozen=True)
class Leaving:
    """A run of an earlier revision, which is to end."""

    run: str
    cancel_at: float | None  # None: not before `until` says so
    until: str | None  # the version that is to be ready first

    def to_json(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Leaving:
        return cls(run=body["run"], cancel_at=body.get("cancel_at"), until=body.get("until"))


@dataclass(frozen=True)
class ServiceRecord:
    id: str
    workspace_id: str
    name: str
    created_at: float
    kind: str
    target: str | None  # None: the server's own machine
    settings: ServiceSettings
    sealed: str = field(repr=False)  # its keys
    created_by: str | None
    updated_at: float
    gateway: str  # the version at which requests come in
    default: str  # the version that gets the requests which the others do not
    versions: Mapping[str, Version]
    leaving: tuple[Leaving, ...]
    deleting: bool
    labels: Labels

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

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "workspace_id": self.workspace_id,
            "name": self.name,
            "created_at": self.created_at,
            "kind": self.kind,
            "target": self.target,
            "settings": self.settings.to_json(),
            "sealed": self.sealed,
            "created_by": self.created_by,
            "updated_at": self.updated_at,
            "gateway": self.gateway,
            "default": self.default,
            "versions": {name: version.to_json() for name, version in self.versions.items()},
            "leaving": [each.to_json() for each in self.leaving],
            "deleting": self.deleting,
            **self.labels.to_json(),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ServiceRecord:
        """As it was kept, perhaps by another release: what this one does not know is left out."""
        return cls(
            id=body["id"],
            workspace_id=body["workspace_id"],
            name=body["name"],
            created_at=body["created_at"],
            kind=body["kind"],
            target=body.get("target"),
            settings=ServiceSettings.from_json(body.get("settings") or {}),
            sealed=body["sealed"],
            created_by=body.get("created_by"),
            updated_at=body.get("updated_at", body["created_at"]),
            gateway=body.get("gateway", ""),
            default=body.get("default", ""),
            versions={name: Version.from_json(version) for name, version in body["versions"].items()},
            leaving=tuple(Leaving.from_json(each) for each in body.get("leaving") or ()),
            deleting=body.get("deleting", False),
            labels=Labels.from_json(body),
        )


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
