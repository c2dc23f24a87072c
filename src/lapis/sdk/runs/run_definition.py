"""What a submitted run shows of itself as `runDefinition`, under the keys that SDK v1's service uses."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from typing import Any, Iterable, Mapping

from lapis.sdk.config.runconfig import RunConfiguration, to_run_definition
from lapis.sdk.data.consumption import DatasetConsumptionConfig
from lapis.sdk.data.data_reference import DataReference

_RENAMED = {
    "amlcompute": "amlCompute",
    "kubernetescompute": "kubernetesCompute",
    "paralleltask": "parallelTask",
    "pytorch": "pyTorch",
}
_OF_AZURE = ("aiSuperComputer", "cmk8sCompute", "commandReturnCodeConfig", "containerInstance", "exposedPorts")


def run_definition(
    run_config: RunConfiguration, target: str, experiment: str, arguments: Iterable[Any], dataset_ids: Mapping[str, Any]
) -> dict[str, Any]:
    """`arguments` are the objects themselves: datasets and references among them are named under `data` too."""
    plain = to_run_definition(run_config)  # the server puts stars in the place of secrets before it keeps it
    found = {_RENAMED.get(key, key): value for key, value in plain.items()}
    found.update(target=target, command=found["command"] or "", environment=_named(found["environment"], experiment))
    found.update((key, None) for key in _OF_AZURE)
    for value in arguments:
        if isinstance(value, DatasetConsumptionConfig):
            found["data"].setdefault(value.name, _input(value, dataset_ids.get(value.name)))
        elif isinstance(value, DataReference):
            found["dataReferences"].setdefault(value.data_reference_name, _reference(value))
    return found


def _named(environment: dict[str, Any], experiment: str) -> dict[str, Any]:
    """Every run has an environment with a name and a version, also one that was never registered."""
    name = environment.get("name") or f"Experiment {experiment} Environment"
    version = environment.get("version")
    if not version:
        mark = hashlib.sha256(json.dumps(environment, sort_keys=True, default=str).encode()).hexdigest()[:8]
        version = f"Autosave_{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}_{mark}"
    return dict(environment, name=name, version=str(version))


def _input(value: DatasetConsumptionConfig, dataset_id: str | None) -> dict[str, Any]:
    dataset = value.dataset
    version = None if dataset.version is None else str(dataset.version)
    known = {"id": dataset_id, "name": dataset.name, "version": version}
    return {
        "dataLocation": {"dataset": known, "dataPath": None},
        "mechanism": value.mode.capitalize(),
        "environmentVariableName": value.name,
        "pathOnCompute": value.path_on_compute,
        "overwrite": False,
    }


def _reference(value: DataReference) -> dict[str, Any]:
    return {
        "dataStoreName": value.datastore.name,
        "mode": value.mode.capitalize(),
        "pathOnDataStore": value.path_on_datastore,
        "pathOnCompute": value.path_on_compute,
        "overwrite": value.overwrite,
    }
