"""Routes of compute targets."""

from __future__ import annotations

from dataclasses import dataclass

from lapis.domain.changes import ComputeChange, checked_as
from lapis.domain.values import Value
from lapis.server.api.repeats import kept, whole
from lapis.server.api.request import Asked, Response, TheControl, answer
from lapis.server.api.routing import Routes
from lapis.server.control.computes import NewCompute

router = Routes("/workspaces/{workspace_id}/computes")


@dataclass(frozen=True)
class Preempted(Value):
    node: str | None = None  # of several: any


@router.get("")
def computes(control: TheControl, workspace_id: str) -> Response:
    return answer({"computes": control.computes.all(workspace_id)})


@router.post("")
@kept
def create(control: TheControl, workspace_id: str, new: NewCompute) -> Response:
    return answer(control.computes.create(workspace_id, new), 201)


@router.get("/{name}")
def compute(control: TheControl, workspace_id: str, name: str) -> Response:
    return answer(control.computes.get(workspace_id, name))


@router.patch("/{name}")
@whole
def update(control: TheControl, workspace_id: str, name: str, changes: Asked) -> Response:
    return answer(control.computes.update(workspace_id, name, checked_as(ComputeChange, changes)))


@router.delete("/{name}")
@kept
def delete(control: TheControl, workspace_id: str, name: str) -> Response:
    control.computes.delete(workspace_id, name)
    return answer({})


@router.post("/{name}/preempt")
@whole
def preempt(
    control: TheControl,
    workspace_id: str,
    name: str,
    taken: Preempted,
) -> Response:
    return answer({"nodes": control.computes.preempt(workspace_id, name, taken.node)})
