"""Routes of a workspace's key vault. What is asked for stands in the body, as addresses end up in logs."""

from __future__ import annotations

from dataclasses import dataclass

from lapis.domain.values import Value
from lapis.server.api.repeats import harmless, whole
from lapis.server.api.request import Response, TheControl, answer
from lapis.server.api.routing import Routes
from lapis.server.control.secrets import NewSecret

router = Routes("/workspaces/{workspace_id}/secrets")


@dataclass(frozen=True)
class NewSecrets(Value):
    secrets: tuple[NewSecret, ...]


@dataclass(frozen=True)
class Named(Value):
    names: tuple[str, ...]


@router.get("")
def names(control: TheControl, workspace_id: str) -> Response:
    return answer({"secrets": control.secrets.names(workspace_id)})


@router.post("")
@whole
def set_secrets(control: TheControl, workspace_id: str, new: NewSecrets) -> Response:
    control.secrets.set(workspace_id, list(new.secrets))
    return answer({})


@router.post("/read")
@harmless("it changes nothing, and secrets stand in no kept answer")
def read(control: TheControl, workspace_id: str, asked: Named) -> Response:
    return answer({"secrets": control.secrets.get(workspace_id, list(asked.names))})


@router.post("/delete")
@whole
def delete(control: TheControl, workspace_id: str, asked: Named) -> Response:
    control.secrets.delete(workspace_id, list(asked.names))
    return answer({})
