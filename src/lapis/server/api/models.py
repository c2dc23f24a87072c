"""Routes of models."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from lapis.server.api.system import TheActor, TheSystem, answer
from lapis.server.control.models import NewModel

router = APIRouter(prefix="/workspaces/{workspace_id}/models")


@router.get("")
def find(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    name: str | None = None,
    latest: bool = False,
    run_id: str | None = None,
    framework: str | None = None,
    dataset_id: str | None = None,
) -> Response:
    return answer({"models": system.models.find(actor, workspace_id, name, latest, run_id, framework, dataset_id)})


@router.post("")
def register(system: TheSystem, actor: TheActor, workspace_id: str, new: NewModel) -> Response:
    return answer(system.models.register(actor, workspace_id, new), 201)


@router.get("/{name}")
def newest(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    return answer(system.models.get(actor, workspace_id, name))


@router.get("/{name}/{version}")
def version(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int) -> Response:
    return answer(system.models.get(actor, workspace_id, name, version))


@router.get("/{name}/{version}/lineage")
def lineage(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int) -> Response:
    return answer(system.models.lineage(actor, workspace_id, name, version))


@router.get("/{name}/{version}/no_code")
def no_code(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int) -> Response:
    return answer(system.models.no_code(actor, workspace_id, name, version))


@router.patch("/{name}/{version}")
def change(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    name: str,
    version: int,
    changes: Annotated[dict[str, Any], Body()],
) -> Response:
    return answer(system.models.change(actor, workspace_id, name, version, changes))


@router.delete("/{name}/{version}")
def delete(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int) -> Response:
    system.models.delete(actor, workspace_id, name, version)
    return answer({})
