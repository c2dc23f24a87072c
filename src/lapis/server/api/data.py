"""Routes of datastores and datasets."""

from __future__ import annotations

from dataclasses import dataclass

from lapis.domain.changes import DatasetChange, checked_as
from lapis.domain.values import Value
from lapis.server.api.long_work import LOOKING
from lapis.server.api.repeats import kept, whole
from lapis.server.api.request import Asked, Response, TheControl, answer
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import Version
from lapis.server.control.data import NewDataset, NewDatastore

router = Routes("/workspaces/{workspace_id}")


@dataclass(frozen=True)
class Chosen(Value):
    name: str


@router.get("/datastores")
def datastores(control: TheControl, workspace_id: str) -> Response:
    return answer({"datastores": control.data.datastores(workspace_id)})


@router.get("/datastore")
def datastore(control: TheControl, workspace_id: str, name: str | None = None) -> Response:
    return answer(control.data.datastore(workspace_id, name))


@router.get("/datastore/access")
def datastore_access(control: TheControl, workspace_id: str, name: str) -> Response:
    return answer(control.data.datastore_access(workspace_id, name))


@router.post("/datastores")
@LOOKING.route
@kept
def register_datastore(control: TheControl, workspace_id: str, new: NewDatastore) -> Response:
    return answer(control.data.register_datastore(workspace_id, new), 201)


@router.put("/datastore/default")
@whole
def set_default(control: TheControl, workspace_id: str, chosen: Chosen) -> Response:
    control.data.set_default(workspace_id, chosen.name)
    return answer({})


@router.delete("/datastore")
@whole
def unregister_datastore(control: TheControl, workspace_id: str, name: str) -> Response:
    control.data.unregister_datastore(workspace_id, name)
    return answer({})


@router.post("/datasets")
@whole
def register_dataset(control: TheControl, workspace_id: str, new: NewDataset) -> Response:
    return answer(control.data.register_dataset(workspace_id, new), 201)


@router.get("/datasets")
def datasets(control: TheControl, workspace_id: str) -> Response:
    return answer({"datasets": control.data.datasets(workspace_id)})


@router.get("/dataset")
def dataset(control: TheControl, workspace_id: str, name: str, version: Version | None = None) -> Response:
    return answer(control.data.dataset(workspace_id, name, version))


@router.delete("/dataset")
@whole
def unregister_dataset(control: TheControl, workspace_id: str, name: str) -> Response:
    control.data.unregister_dataset(workspace_id, name)
    return answer({})


@router.get("/datasets/{dataset_id}")
def dataset_by_id(control: TheControl, workspace_id: str, dataset_id: str) -> Response:
    return answer(control.data.dataset_by_id(workspace_id, dataset_id))


@router.patch("/datasets/{dataset_id}")
@whole
def change_dataset(
    control: TheControl,
    workspace_id: str,
    dataset_id: str,
    changes: Asked,
) -> Response:
    asked = checked_as(DatasetChange, changes)
    return answer(control.data.change_dataset(workspace_id, dataset_id, asked))


@router.get("/datasets/{dataset_id}/files")
def files_of_dataset(control: TheControl, workspace_id: str, dataset_id: str) -> Response:
    return answer({"files": control.data.files(workspace_id, dataset_id)})


@router.get("/runs/{run_id}/datasets")
def datasets_of_run(control: TheControl, workspace_id: str, run_id: str) -> Response:
    return answer({"datasets": control.data.of_run(workspace_id, run_id)})


@router.get("/datasets/{dataset_id}/runs")
def lineage(control: TheControl, workspace_id: str, dataset_id: str) -> Response:
    return answer({"runs": control.data.lineage(workspace_id, dataset_id)})
