"""The data of a run: what a configuration asks for, turned into what its agent must lay out."""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple

from lapis.domain.data import STORE
from lapis.errors import NotThereYet, UserErrorException
from lapis.sdk.consumption import DIRECT, DatasetConsumptionConfig
from lapis.sdk.data_reference import DataReference
from lapis.sdk.file_dataset import FileDataset


class RunData(NamedTuple):
    inputs: list[dict[str, Any]]
    uses: list[tuple[str, str, str]]  # asset id, role, name: lineage


def is_data(value: Any) -> bool:
    return isinstance(value, (DatasetConsumptionConfig, DataReference, FileDataset))


def as_argument(value: Any) -> Any:
    """What stands in the command line until the agent knows the path."""
    if isinstance(value, DataReference):
        return str(value)  # a variable: the agent sets it
    if isinstance(value, FileDataset):
        raise UserErrorException("A dataset in arguments needs a way to get it: dataset.as_mount() or as_download().")
    return {"input": value.name}


def collect(arguments: list[Any], references: Mapping[str, Any], workspace: Any) -> RunData:
    """Everything that the arguments and the run configuration's data_references name, each once."""
    inputs: dict[str, dict[str, Any]] = {}
    uses = []
    for value in arguments:
        if isinstance(value, DatasetConsumptionConfig):
            inputs[value.name] = _dataset(value, workspace)
            if value.dataset.id is not None:
                uses.append((value.dataset.id, "input", value.name))
        elif isinstance(value, DataReference):
            inputs["$" + value.data_reference_name] = _reference(
                value.data_reference_name, value.datastore, value.path_on_datastore, value.mode, value.path_on_compute,
                value.overwrite,
            )  # fmt: skip
    for name, config in references.items():
        from lapis.sdk.datastore import Datastore

        store = Datastore(workspace, config.data_store_name)
        inputs["$" + name] = _reference(
            name, store, config.path_on_data_store, config.mode, config.path_on_compute, config.overwrite
        )
    return RunData(list(inputs.values()), uses)


def _dataset(value: DatasetConsumptionConfig, workspace: Any) -> dict[str, Any]:
    dataset = value.dataset
    if not isinstance(dataset, FileDataset):
        raise NotThereYet(f"A run with an input of type {type(dataset).__name__} is not there yet in this release.")
    if value.mode == DIRECT and dataset.id is None:
        raise UserErrorException(
            f"Input '{value.name}' is neither mounted nor downloaded, and its dataset is not registered: use as_mount(), "
            "or register() it first."
        )
    dataset._workspace = dataset._workspace or workspace
    stores = {s["datastore"] for s in dataset._definition["sources"] if s["kind"] == STORE}
    from lapis.sdk.datastore import Datastore

    return {
        "type": "dataset",
        "name": value.name,
        "mode": value.mode,
        "path_on_compute": value.path_on_compute,
        "definition": dataset._definition,
        "dataset_id": dataset.id,
        "folders": {name: Datastore(dataset._workspace, name)._root() for name in sorted(stores)},
    }


def _reference(name: str, store: Any, path: Any, mode: str, path_on_compute: Any, overwrite: bool) -> dict[str, Any]:
    from lapis.domain.tree import resolve_under

    root = store._root()
    inside = (path or "").strip("/")
    return {
        "type": "reference",
        "name": name,
        "mode": mode,
        "path_on_compute": path_on_compute,
        "place": resolve_under(root, inside) if inside else os.path.realpath(root),
        "overwrite": bool(overwrite),
    }
