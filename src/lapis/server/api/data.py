"""Routes of datastores and datasets."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Body, Response

from lapis.server.api.system import TheActor, TheSystem, answer
from lapis.server.control.data import NewDataset, NewDatastore

router = APIRouter(prefix="/workspaces/{workspace_id}")


@router.get("/datastores")
def datastores(system: TheSystem, actor: TheActor, workspace_id: str) -> Response:
    return answer({"datastores": system.data.datastores(actor, workspace_id)})


@router.get("/datastore")
def datastore(system: TheSystem, actor: TheActor, workspace_id: str, name: str | None = None) -> Response:
    return answer(system.data.datastore(actor, workspace_id, name))


@router.get("/datastore/access")
def datastore_access(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    return answer(system.data.datastore_access(actor, workspace_id, name))


@router.post("/datastores")
def register_datastore(system: TheSystem, actor: TheActor, workspace_id: str, new: NewDatastore) -> Response:
    return answer(system.data.register_datastore(actor, workspace_id, new), 201)


@router.put("/datastore/default")
def set_default(system: TheSystem, actor: TheActor, workspace_id: str, name: str = Body(embed=True)) -> Response:
    system.data.set_default(actor, workspace_id, name)
    return answer({})


@router.delete("/datastore")
def unregister_datastore(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    system.data.unregister_datastore(actor, workspace_id, name)
    return answer({})


@router.post("/datasets")
def register_dataset(system: TheSystem, actor: TheActor, workspace_id: str, new: NewDataset) -> Response:
    return answer(system.data.register_dataset(actor, workspace_id, new), 201)


@router.get("/datasets")
def datasets(system: TheSystem, actor: TheActor, workspace_id: str) -> Response:
    return answer({"datasets": system.data.datasets(actor, workspace_id)})


@router.get("/dataset")
def dataset(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int | None = None) -> Response:
    return answer(system.data.dataset(actor, workspace_id, name, version))


@router.delete("/dataset")
def unregister_dataset(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    system.data.unregister_dataset(actor, workspace_id, name)
    return answer({})


@router.get("/datasets/{dataset_id}")
def dataset_by_id(system: TheSystem, actor: TheActor, workspace_id: str, dataset_id: str) -> Response:
    return answer(system.data.dataset_by_id(actor, workspace_id, dataset_id))


@router.patch("/datasets/{dataset_id}")
def change_dataset(
    system: TheSystem,
    actor: TheActor,
    workspace_id: str,
    dataset_id: str,
    changes: dict[str, Any] = Body(),  # noqa: B008
) -> Response:
    return answer(system.data.change_dataset(actor, workspace_id, dataset_id, changes))


@router.get("/datasets/{dataset_id}/files")
def files_of_dataset(system: TheSystem, actor: TheActor, workspace_id: str, dataset_id: str) -> Response:
    return answer({"files": system.data.files(actor, workspace_id, dataset_id)})


@router.get("/runs/{run_id}/datasets")
def datasets_of_run(system: TheSystem, actor: TheActor, workspace_id: str, run_id: str) -> Response:
    return answer({"datasets": system.data.of_run(actor, workspace_id, run_id)})


@router.get("/datasets/{dataset_id}/runs")
def lineage(system: TheSystem, actor: TheActor, workspace_id: str, dataset_id: str) -> Response:
    return answer({"runs": system.data.lineage(actor, workspace_id, dataset_id)})
