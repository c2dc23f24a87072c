"""Routes of models."""

from __future__ import annotations

from lapis.domain.changes import ModelChange, checked_as
from lapis.server.api.long_work import LOOKING
from lapis.server.api.repeats import whole
from lapis.server.api.request import Asked, Response, TheControl, answer, blob_answer
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import Version
from lapis.server.control.models import NewModel

router = Routes("/workspaces/{workspace_id}/models")


@router.get("")
def find(
    control: TheControl,
    workspace_id: str,
    name: str | None = None,
    latest: bool = False,
    run_id: str | None = None,
    framework: str | None = None,
    dataset_id: str | None = None,
) -> Response:
    return answer({"models": control.models.find(workspace_id, name, latest, run_id, framework, dataset_id)})


@router.post("")
@whole
def register(control: TheControl, workspace_id: str, new: NewModel) -> Response:
    return answer(control.models.register(workspace_id, new), 201)


@router.get("/{name}")
def newest(control: TheControl, workspace_id: str, name: str) -> Response:
    return answer(control.models.get(workspace_id, name))


@router.get("/{name}/{version}")
def version(control: TheControl, workspace_id: str, name: str, version: Version) -> Response:
    return answer(control.models.get(workspace_id, name, version))


@router.get("/{name}/{version}/lineage")
def lineage(control: TheControl, workspace_id: str, name: str, version: Version) -> Response:
    return answer(control.models.lineage(workspace_id, name, version))


@router.get("/{name}/{version}/no_code")
@LOOKING.route
def no_code(control: TheControl, workspace_id: str, name: str, version: Version) -> Response:
    return answer(control.models.no_code(workspace_id, name, version))


@router.get("/{name}/{version}/blobs/{digest}")
def file(control: TheControl, workspace_id: str, name: str, version: Version, digest: str) -> Response:
    return blob_answer(*control.models.open_file(workspace_id, name, version, digest))


@router.patch("/{name}/{version}")
@whole
def change(
    control: TheControl,
    workspace_id: str,
    name: str,
    version: Version,
    changes: Asked,
) -> Response:
    return answer(control.models.change(workspace_id, name, version, checked_as(ModelChange, changes)))


@router.delete("/{name}/{version}")
@whole
def delete(control: TheControl, workspace_id: str, name: str, version: Version) -> Response:
    control.models.delete(workspace_id, name, version)
    return answer({})
