"""Routes of services, and of what they are deployed from and measured with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response

from lapis.domain.deployment import NewKey, NewService, ServiceChange
from lapis.server.api.system import TheActor, TheSystem, answer

router = APIRouter(prefix="/workspaces/{workspace_id}/services")
Asked = Annotated[Any, Body()]  # read by what it becomes


@router.get("")
def find(system: TheSystem, actor: TheActor, workspace_id: str) -> Response:
    return answer({"services": system.services.all(actor, workspace_id)})


@router.post("")
def deploy(system: TheSystem, actor: TheActor, workspace_id: str, new: Asked) -> Response:
    return answer(system.services.deploy(actor, workspace_id, NewService.checked(new, "service")), 201)


@router.get("/{name}")
def get(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    return answer(system.services.get(actor, workspace_id, name))


@router.patch("/{name}")
def update(system: TheSystem, actor: TheActor, workspace_id: str, name: str, change: Asked) -> Response:
    return answer(system.services.update(actor, workspace_id, name, ServiceChange.checked(change, "change")))


@router.delete("/{name}")
def delete(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    system.services.delete(actor, workspace_id, name)
    return answer({})


@router.get("/{name}/logs")
def logs(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    name: str,
    version: str | None = None,
    lines: Annotated[int, Query(ge=1, le=1_000_000)] = 5000,
    init: bool = False,
) -> Response:
    return answer({"logs": system.services.logs(actor, workspace_id, name, version, lines, init)})


@router.get("/{name}/keys")
def keys(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    return answer(system.services.keys(actor, workspace_id, name))


@router.post("/{name}/keys")
def regenerate(system: TheSystem, actor: TheActor, workspace_id: str, name: str, new: Asked) -> Response:
    return answer(system.services.regenerate(actor, workspace_id, name, NewKey.checked(new, "key")))


@router.post("/{name}/token")
def token(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    return answer(system.services.token(actor, workspace_id, name))


@router.post("/{name}/versions/{version}")
def create_version(
    system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: str, change: Asked
) -> Response:
    asked = ServiceChange.checked(change, "change")
    return answer(system.services.create_version(actor, workspace_id, name, version, asked), 201)


@router.patch("/{name}/versions/{version}")
def update_version(
    system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: str, change: Asked
) -> Response:
    asked = ServiceChange.checked(change, "change")
    return answer(system.services.update_version(actor, workspace_id, name, version, asked))


@router.delete("/{name}/versions/{version}")
def delete_version(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: str) -> Response:
    return answer(system.services.delete_version(actor, workspace_id, name, version))
