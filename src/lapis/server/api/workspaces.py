"""Routes of workspaces and experiments."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Response

from lapis.domain.run import parse_label
from lapis.server.api.system import TheActor, TheSystem, answer
from lapis.server.control.workspaces import NewWorkspace

router = APIRouter()


@router.post("/workspaces")
def create(system: TheSystem, actor: TheActor, new: NewWorkspace) -> Response:
    return answer(system.workspaces.create(actor, new), 201)


@router.get("/workspaces")
def find(
    system: TheSystem,
    actor: TheActor,
    name: str | None = None,
    subscription_id: str | None = None,
    resource_group: str | None = None,
) -> Response:
    found = system.workspaces.find(actor, name=name, subscription_id=subscription_id, resource_group=resource_group)
    return answer({"workspaces": found})


@router.get("/workspaces/{workspace_id}")
def get(system: TheSystem, actor: TheActor, workspace_id: str) -> Response:
    return answer(system.workspaces.get(actor, workspace_id))


@router.patch("/workspaces/{workspace_id}")
def update(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    changes: dict[str, Any] = Body(),  # noqa: B008
) -> Response:
    return answer(system.workspaces.update(actor, workspace_id, changes))


@router.delete("/workspaces/{workspace_id}")
def delete(system: TheSystem, actor: TheActor, workspace_id: str) -> Response:
    system.workspaces.delete(actor, workspace_id)
    return answer({})


@router.post("/workspaces/{workspace_id}/experiments")
def add_experiment(system: TheSystem, actor: TheActor, workspace_id: str, name: str = Body(embed=True)) -> Response:
    return answer(system.workspaces.add_experiment(actor, workspace_id, name), 201)


@router.get("/workspaces/{workspace_id}/experiments")
def experiments(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    name: str | None = None,
    view: str = "ActiveOnly",
    tag: Annotated[list[str] | None, Query()] = None,
) -> Response:
    tags = dict(parse_label(text) for text in tag or [])
    return answer({"experiments": system.workspaces.experiments(actor, workspace_id, name, view, tags)})


@router.patch("/workspaces/{workspace_id}/experiments/{experiment_id}")
def change_experiment(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    experiment_id: str,
    changes: dict[str, Any] = Body(),  # noqa: B008
) -> Response:
    return answer(system.workspaces.change_experiment(actor, workspace_id, experiment_id, changes))


@router.delete("/workspaces/{workspace_id}/experiments/{experiment_id}")
def delete_experiment(system: TheSystem, actor: TheActor, workspace_id: str, experiment_id: str) -> Response:
    system.workspaces.delete_experiment(actor, workspace_id, experiment_id)
    return answer({})
