"""What a search is described by, field by field. Whether it makes sense as a whole, `sweeps.check_spec` says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from lapis.domain.values import Value, at_most


@dataclass(frozen=True)
class SamplingShape(Value):
    name: str
    parameter_space: Mapping[str, Any]
    seed: Any = None


@dataclass(frozen=True)
class PolicyShape(Value):
    name: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class ResumedChild(Value):
    run_id: str = field(metadata=at_most(255))
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SpecShape(Value):
    sampling: SamplingShape
    policy: PolicyShape
    metric: Any
    goal: Any
    max_total: Any
    max_minutes: Any
    max_concurrent: Any = None
    resume_from: tuple[str, ...] = ()
    resume_child_runs: tuple[ResumedChild, ...] = ()
