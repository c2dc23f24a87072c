"""The data of a run: what a configuration asks for, turned into what its agent must lay out."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Mapping, NamedTuple, TypeVar

from lapis.domain import settings as settings_module
from lapis.domain.data import (
    STORE,
    check_path_on_compute,
    check_reference_name,
    output_place,
    parse_mirrors,
)
from lapis.domain.job import DatasetInput, InDatastore, Input, InputName, Output, Reference, Registration, Word
from lapis.errors import UserErrorException
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.sdk.data.consumption import DIRECT, DatasetConsumptionConfig
from lapis.sdk.data.data_reference import DataReference
from lapis.sdk.data.file_dataset import FileDataset
from lapis.sdk.data.output_dataset_config import OutputDatasetConfig, UploadOptions
from lapis.sdk.data.tabular_dataset import TabularDataset

Found = TypeVar("Found", Input, Output)


class RunData(NamedTuple):
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    uses: list[tuple[str, str, str]]  # asset id, role, name: lineage


def is_data(value: Any) -> bool:
    return isinstance(value, (DatasetConsumptionConfig, OutputDatasetConfig, DataReference, AbstractDataset))


def as_argument(value: Any) -> Word:
    """What stands in the command line until the agent knows the path."""
    if isinstance(value, DataReference):
        return str(value)  # a variable: the agent sets it
    if isinstance(value, TabularDataset):
        raise UserErrorException("A table in arguments needs a name to get it by: dataset.as_named_input('name').")
    if isinstance(value, FileDataset):
        raise UserErrorException("A dataset in arguments needs a way to get it: dataset.as_mount() or as_download().")
    return InputName(value.name)


def with_names(words: tuple[Word, ...], data: RunData) -> tuple[Word, ...]:
    """Words that stand for inputs and outputs as such: so they are written in files of run configurations."""
    datasets = [each.name for each in data.inputs if isinstance(each, DatasetInput)]
    known = {f"DatasetConsumptionConfig:{name}": name for name in datasets}
    known.update((f"DatasetOutputConfig:{each.name}", each.name) for each in data.outputs)
    return tuple(InputName(known[word]) if isinstance(word, str) and word in known else word for word in words)


def checked_mirrors() -> str | None:
    """LAPIS_URL_MIRRORS as it goes with a run."""
    mirrors = os.environ.get("LAPIS_URL_MIRRORS")
    parse_mirrors(mirrors)
    return mirrors


def checked_mount() -> str | None:
    """LAPIS_MOUNT as it goes with a run; the server's own counts where it is not set."""
    settings_module.load()
    return os.environ.get("LAPIS_MOUNT")


def collect(arguments: list[Any], references: Mapping[str, Any], workspace: Any, run_id: str) -> RunData:
    """Everything that the arguments and the run configuration's data_references name, each once."""
    inputs: dict[str, Input] = {}
    outputs: dict[str, Output] = {}
    read: dict[str, tuple[DatasetInput, AbstractDataset]] = {}
    for value in arguments:
        if isinstance(value, DatasetConsumptionConfig):
            found = _dataset(value, workspace)
            _add("input", inputs, value.name, found)
            if value.dataset._workspace == workspace:
                read[value.name] = found, value.dataset
        elif isinstance(value, OutputDatasetConfig):
            _add("output", outputs, value.name, _output(value, workspace, run_id))
        elif isinstance(value, DataReference):
            name = value.data_reference_name
            place = _place(value.datastore, value.path_on_datastore)
            reference = Reference(name, value.mode, place, value.path_on_compute, bool(value.overwrite))
            _add("data reference", inputs, "$" + name, reference)
    for name, config in references.items():
        from lapis.sdk.data.datastore import Datastore

        store = Datastore(workspace, config.data_store_name)
        path_on_compute = check_path_on_compute(config.path_on_compute)
        place = _place(store, config.path_on_data_store)
        reference = Reference(name, config.mode, place, path_on_compute, bool(config.overwrite))
        _add("data reference", inputs, "$" + check_reference_name(name), reference)
    both = sorted(inputs.keys() & outputs.keys())
    if both:
        raise UserErrorException(f"'{both[0]}' names an input and an output of the run. Rename one of them.")
    uses = []
    for name, (found, dataset) in read.items():  # the last thing: what is wrong was found before
        dataset_id = dataset._saved_in(workspace)
        inputs[name] = replace(found, dataset_id=dataset_id)
        uses.append((dataset_id, "input", name))
    return RunData(tuple(inputs.values()), tuple(outputs.values()), uses)


def _add(what: str, found: dict[str, Found], name: str, value: Found) -> None:
    """The same again is the same; something else under one name would hide what was there."""
    if found.setdefault(name, value) != value:
        shown = name.lstrip("$")
        raise UserErrorException(f"Two different {what}s of the run are named '{shown}'. Rename one of them.")


def _dataset(value: DatasetConsumptionConfig, workspace: Any) -> DatasetInput:
    dataset = value.dataset
    if isinstance(dataset, OutputDatasetConfig):
        raise UserErrorException(
            f"Input '{value.name}' is the output of another run, which is not known here: as_input() joins the steps "
            "of a pipeline. Use register_on_complete() and Dataset.get_by_name()."
        )
    if isinstance(dataset, TabularDataset):
        if value.mode != DIRECT:
            raise UserErrorException(
                f"Input '{value.name}' is a table, which is not mounted or downloaded: "
                f"use as_named_input('{value.name}'), and run.input_datasets['{value.name}'] in the script."
            )
    elif not isinstance(dataset, FileDataset):
        raise UserErrorException(f"Input '{value.name}' must be a dataset, not {type(dataset).__name__}.")
    dataset._workspace = dataset._workspace or workspace
    if value.mode == DIRECT and dataset._workspace != workspace:
        raise UserErrorException(
            f"Input '{value.name}' is a dataset of workspace '{dataset._workspace.name}', which a run of "
            f"'{workspace.name}' cannot look up. Mount or download it."
        )
    stores = {s["datastore"] for s in dataset._definition["sources"] if s["kind"] == STORE}
    from lapis.sdk.data.datastore import Datastore

    return DatasetInput(
        name=value.name,
        mode=value.mode,
        definition=dataset._definition,
        path_on_compute=value.path_on_compute,
        folders={name: Datastore.get(dataset._workspace, name)._folder_or_none() for name in sorted(stores)},
    )


def _output(value: OutputDatasetConfig, workspace: Any, run_id: str) -> Output:
    """Where it is written to, and what becomes of it when the run has completed."""
    from lapis.sdk.data.datastore import Datastore

    if type(value) is OutputDatasetConfig:
        raise UserErrorException(f"Output '{value.name}' must be an OutputFileDatasetConfig, which says what it is.")
    store, template = value.destination or (Datastore(workspace, "workspaceblobstore"), None)
    if store.workspace != workspace:
        raise UserErrorException(f"Output '{value.name}' goes to a datastore of workspace '{store.workspace.name}'.")
    path = output_place(template, run_id, value.name)
    options, registration = value._options or UploadOptions(), value._registration
    return Output(
        name=value.name,
        mode=value.mode,
        place=_place(store, path),
        definition=value._definition({"kind": STORE, "datastore": store.name, "path": _joined(path, value._glob)}),
        path_on_compute=check_path_on_compute(value.source),
        overwrite=bool(options.overwrite),
        globs=tuple(options.source_globs or ()),
        glob=value._glob,
        register=None if registration is None else Registration(**vars(registration)),
    )


def _joined(*parts: str | None) -> str:
    return "/".join(part for part in parts if part)


def _place(store: Any, path: Any) -> str | InDatastore:
    from lapis.domain.tree import check_path, resolve_under

    inside = (path or "").strip("/")
    root = store._folder_or_none()
    if root is None:
        return InDatastore(store.name, check_path(inside) if inside else "")
    return resolve_under(root, inside) if inside else os.path.realpath(root)
