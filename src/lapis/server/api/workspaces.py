"""Routes of workspaces and experiments."""

from __future__ import annotations

from dataclasses import dataclass

from lapis.domain.changes import ExperimentChange, WorkspaceChange, checked_as
from lapis.domain.run import parse_label
from lapis.domain.values import Value
from lapis.server.api.repeats import whole
from lapis.server.api.request import Asked, Response, TheControl, answer
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import Filters
from lapis.server.control.workspaces import NewWorkspace

router = Routes()


@dataclass(frozen=True)
class NewExperiment(Value):
    name: str


@router.post("/workspaces")
@whole
def create(control: TheControl, new: NewWorkspace) -> Response:
    return answer(control.workspaces.create(new), 201)


@router.get("/workspaces")
def find(
    control: TheControl,
    name: str | None = None,
    subscription_id: str | None = None,
    resource_group: str | None = None,
) -> Response:
    found = control.workspaces.find(name=name, subscription_id=subscription_id, resource_group=resource_group)
    return answer({"workspaces": found})


@router.get("/workspaces/{workspace_id}")
def get(control: TheControl, workspace_id: str) -> Response:
    return answer(control.workspaces.get(workspace_id))


@router.patch("/workspaces/{workspace_id}")
@whole
def update(
    control: TheControl,
    workspace_id: str,
    changes: Asked,
) -> Response:
    return answer(control.workspaces.update(workspace_id, checked_as(WorkspaceChange, changes)))


@router.delete("/workspaces/{workspace_id}")
@whole
def delete(control: TheControl, workspace_id: str) -> Response:
    control.workspaces.delete(workspace_id)
    return answer({})


@router.post("/workspaces/{workspace_id}/experiments")
@whole
def add_experiment(control: TheControl, workspace_id: str, new: NewExperiment) -> Response:
    return answer(control.workspaces.add_experiment(workspace_id, new.name), 201)


@router.get("/workspaces/{workspace_id}/experiments")
def experiments(
    control: TheControl,
    workspace_id: str,
    name: str | None = None,
    view: str = "ActiveOnly",
    tag: Filters | None = None,
) -> Response:
    tags = dict(parse_label(text) for text in tag or [])
    return answer({"experiments": control.workspaces.experiments(workspace_id, name, view, tags)})


@router.patch("/workspaces/{workspace_id}/experiments/{experiment_id}")
@whole
def change_experiment(
    control: TheControl,
    workspace_id: str,
    experiment_id: str,
    changes: Asked,
) -> Response:
    asked = checked_as(ExperimentChange, changes)
    return answer(control.workspaces.change_experiment(workspace_id, experiment_id, asked))


@router.delete("/workspaces/{workspace_id}/experiments/{experiment_id}")
@whole
def delete_experiment(control: TheControl, workspace_id: str, experiment_id: str) -> Response:
    control.workspaces.delete_experiment(workspace_id, experiment_id)
    return answer({})
