"""Routes of compute targets."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from lapis.server.api.system import TheActor, TheSystem, answer
from lapis.server.control.computes import NewCompute

router = APIRouter(prefix="/workspaces/{workspace_id}/computes")


@router.get("")
def computes(system: TheSystem, actor: TheActor, workspace_id: str) -> Response:
    return answer({"computes": system.computes.all(actor, workspace_id)})


@router.post("")
def create(system: TheSystem, actor: TheActor, workspace_id: str, new: NewCompute) -> Response:
    return answer(system.computes.create(actor, workspace_id, new), 201)


@router.get("/{name}")
def compute(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    return answer(system.computes.get(actor, workspace_id, name))


@router.patch("/{name}")
def update(
    system: TheSystem, actor: TheActor, workspace_id: str, name: str, changes: Annotated[dict[str, Any], Body()]
) -> Response:
    return answer(system.computes.update(actor, workspace_id, name, changes))


@router.delete("/{name}")
def delete(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    system.computes.delete(actor, workspace_id, name)
    return answer({})


@router.post("/{name}/preempt")
def preempt(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    name: str,
    node: Annotated[str | None, Body(embed=True)] = None,
) -> Response:
    return answer({"nodes": system.computes.preempt(actor, workspace_id, name, node)})
