"""What may be changed of a thing, field by field. What is left out stays as it is, and null takes a text away.

A change travels as a plain dictionary, because a field that is null says something else than one that is not there:
these classes say what such a dictionary may hold, and `checked_as` that it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Mapping

from lapis.domain import limits
from lapis.domain.values import Value, at_most, within

_MANY = at_most(limits.LABELS)
_NAME = at_most(limits.NAME)


def checked_as(kind: Any, changes: Any) -> dict[str, Any]:
    """`changes` if they are of that kind; a UserErrorException that names the field if they are not."""
    kind.checked(changes, "change")
    takes_null = {each.name for each in fields(kind) if each.default is None}
    return {name: value for name, value in changes.items() if value is not None or name in takes_null}


@dataclass(frozen=True)
class RunChange(Value):
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    remove_tags: tuple[str, ...] = field(default=(), metadata=_MANY)
    properties: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    display_name: str | None = None
    description: str | None = None
    archived: bool = False
    snapshot_id: str | None = field(default=None, metadata=_NAME)


@dataclass(frozen=True)
class WorkspaceChange(Value):
    friendly_name: str | None = field(default=None, metadata=_NAME)
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    image_build_compute: str | None = field(default=None, metadata=_NAME)


@dataclass(frozen=True)
class ExperimentChange(Value):
    name: str | None = field(default=None, metadata=_NAME)
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    remove_tags: tuple[str, ...] = field(default=(), metadata=_MANY)
    archived: bool = False


@dataclass(frozen=True)
class DatasetChange(Value):
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    remove_tags: tuple[str, ...] = field(default=(), metadata=_MANY)
    description: str | None = None


@dataclass(frozen=True)
class ModelChange(Value):
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    remove_tags: tuple[str, ...] = field(default=(), metadata=_MANY)
    properties: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    description: str | None = None
    resources: Mapping[str, Any] | None = field(default=None, metadata=_MANY)
    datasets: tuple[tuple[str, ...], ...] = field(default=(), metadata=_MANY)
    sample_input: str | None = field(default=None, metadata=_NAME)
    sample_output: str | None = field(default=None, metadata=_NAME)

    def fault(self) -> str:
        pairs = all(len(each) == 2 for each in self.datasets)
        return "" if pairs else "has datasets that are not a purpose and an id."


@dataclass(frozen=True)
class ComputeChange(Value):
    min_nodes: int = field(default=0, metadata=within(0, limits.NODES))
    max_nodes: int = field(default=0, metadata=within(0, limits.NODES))
    idle_seconds: float = field(default=0.0, metadata=within(0, limits.SECONDS))
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=_MANY)
    description: str | None = None
