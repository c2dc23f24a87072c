"""Routes of services, and of what they are deployed from and measured with."""

from __future__ import annotations

from typing import Annotated

from lapis.domain.deployment import NewKey, NewService, ServiceChange
from lapis.server.api.long_work import DEPLOYING
from lapis.server.api.repeats import harmless, kept, whole
from lapis.server.api.request import Asked, Response, TheControl, answer
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import Bounds

router = Routes("/workspaces/{workspace_id}/services")


@router.get("")
def find(control: TheControl, workspace_id: str) -> Response:
    return answer({"services": control.services.all(workspace_id)})


@router.post("")
@DEPLOYING.route
@kept
def deploy(control: TheControl, workspace_id: str, new: Asked) -> Response:
    return answer(control.services.deploy(workspace_id, NewService.checked(new, "service")), 201)


@router.get("/{name}")
def get(control: TheControl, workspace_id: str, name: str) -> Response:
    return answer(control.services.get(workspace_id, name))


@router.patch("/{name}")
@DEPLOYING.route
@kept
def update(control: TheControl, workspace_id: str, name: str, change: Asked) -> Response:
    return answer(control.services.update(workspace_id, name, ServiceChange.checked(change, "change")))


@router.delete("/{name}")
@DEPLOYING.route
@kept
def delete(control: TheControl, workspace_id: str, name: str) -> Response:
    control.services.delete(workspace_id, name)
    return answer({})


@router.get("/{name}/logs")
def logs(
    control: TheControl,
    workspace_id: str,
    name: str,
    version: str | None = None,
    lines: Annotated[int, Bounds(1, 1_000_000)] = 5000,
    init: bool = False,
) -> Response:
    return answer({"logs": control.services.logs(workspace_id, name, version, lines, init)})


@router.get("/{name}/keys")
def keys(control: TheControl, workspace_id: str, name: str) -> Response:
    return answer(control.services.keys(workspace_id, name))


@router.post("/{name}/keys")
@DEPLOYING.route
@harmless("a key that nobody was told is replaced by one that is; keys are kept sealed, not in answers")
def regenerate(control: TheControl, workspace_id: str, name: str, new: Asked) -> Response:
    return answer(control.services.regenerate(workspace_id, name, NewKey.checked(new, "key")))


@router.post("/{name}/token")
@harmless("it changes nothing, and tokens are kept nowhere")
def token(control: TheControl, workspace_id: str, name: str) -> Response:
    return answer(control.services.token(workspace_id, name))


@router.post("/{name}/versions/{version}")
@DEPLOYING.route
@kept
def create_version(control: TheControl, workspace_id: str, name: str, version: str, change: Asked) -> Response:
    asked = ServiceChange.checked(change, "change")
    return answer(control.services.create_version(workspace_id, name, version, asked), 201)


@router.patch("/{name}/versions/{version}")
@DEPLOYING.route
@kept
def update_version(control: TheControl, workspace_id: str, name: str, version: str, change: Asked) -> Response:
    asked = ServiceChange.checked(change, "change")
    return answer(control.services.update_version(workspace_id, name, version, asked))


@router.delete("/{name}/versions/{version}")
@DEPLOYING.route
@whole
def delete_version(control: TheControl, workspace_id: str, name: str, version: str) -> Response:
    return answer(control.services.delete_version(workspace_id, name, version))
