"""Routes of a workspace's key vault. What is asked for stands in the body, as addresses end up in logs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Response

from lapis.server.api.repeats import harmless, whole
from lapis.server.api.request import TheControl, answer, make_router
from lapis.server.control.secrets import NewSecret

router = make_router("/workspaces/{workspace_id}/secrets")

_Names = Annotated[list[str], Body(embed=True)]


@router.get("")
def names(control: TheControl, workspace_id: str) -> Response:
    return answer({"secrets": control.secrets.names(workspace_id)})


@router.post("")
@whole
def set_secrets(
    control: TheControl, workspace_id: str, secrets: Annotated[list[NewSecret], Body(embed=True)]
) -> Response:
    control.secrets.set(workspace_id, secrets)
    return answer({})


@router.post("/read")
@harmless("it changes nothing, and secrets stand in no kept answer")
def read(control: TheControl, workspace_id: str, names: _Names) -> Response:
    return answer({"secrets": control.secrets.get(workspace_id, names)})


@router.post("/delete")
@whole
def delete(control: TheControl, workspace_id: str, names: _Names) -> Response:
    control.secrets.delete(workspace_id, names)
    return answer({})
