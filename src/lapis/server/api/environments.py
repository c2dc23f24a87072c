"""Routes of environments: registered, found, resolved, built."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from lapis.server.api.system import TheActor, TheSystem, answer
from lapis.server.control.environments import EnvironmentWish

router = APIRouter(prefix="/workspaces/{workspace_id}/environments")

_Definition = Annotated[dict[str, Any], Body(embed=True)]


@router.get("")
def environments(system: TheSystem, actor: TheActor, workspace_id: str) -> Response:
    return answer({"environments": system.environments.all(actor, workspace_id)})


@router.post("")
def register(system: TheSystem, actor: TheActor, workspace_id: str, definition: _Definition) -> Response:
    return answer(system.environments.register(actor, workspace_id, definition), 201)


@router.post("/resolve")
def resolve(system: TheSystem, actor: TheActor, workspace_id: str, wish: EnvironmentWish) -> Response:
    return answer(system.environments.resolve(actor, workspace_id, wish))


@router.post("/details")
def details(system: TheSystem, actor: TheActor, workspace_id: str, wish: EnvironmentWish) -> Response:
    return answer(system.environments.details(actor, workspace_id, wish))


@router.post("/builds")
def build(system: TheSystem, actor: TheActor, workspace_id: str, wish: EnvironmentWish) -> Response:
    return answer(system.environments.build(actor, workspace_id, wish), 201)


@router.get("/builds/{lock}")
def build_status(system: TheSystem, actor: TheActor, workspace_id: str, lock: str) -> Response:
    return answer(system.environments.build_status(actor, workspace_id, lock))


@router.get("/builds/{lock}/log")
def build_log(system: TheSystem, actor: TheActor, workspace_id: str, lock: str, offset: int = 0) -> Response:
    log = system.environments.build_log(actor, workspace_id, lock, offset)
    return Response(log, media_type="text/plain; charset=utf-8")


@router.get("/{name}")
def environment(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    name: str,
    version: str | None = None,
    label: str | None = None,
) -> Response:
    return answer(system.environments.get(actor, workspace_id, name, version, label))


@router.post("/{name}/labels")
def label(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    name: str,
    version: Annotated[str, Body()],
    labels: Annotated[list[str], Body()],
) -> Response:
    return answer(system.environments.label(actor, workspace_id, name, version, labels))
