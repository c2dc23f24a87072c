"""The data that a run configuration itself names, in `data` and `output_data`: as datasets and outputs in arguments."""

from __future__ import annotations

from typing import Any

from lapis.errors import UserErrorException
from lapis.sdk.config.data_sections import Data, DataLocation, OutputData, OutputOptions
from lapis.sdk.data import run_data
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.sdk.data.consumption import DIRECT, MOUNT, DatasetConsumptionConfig
from lapis.sdk.data.datastore import Datastore
from lapis.sdk.data.file_dataset import FileDatasetFactory
from lapis.sdk.data.output_dataset_config import UPLOAD, OutputDatasetConfig, OutputFileDatasetConfig


def named_in(run_config: Any, workspace: Any) -> list[Any]:
    """What a run would be given if it stood in its arguments."""
    inputs = [_input(name, each, workspace) for name, each in (run_config.data or {}).items()]
    return [*inputs, *(_output(name, each, workspace) for name, each in (run_config.output_data or {}).items())]


def _input(name: str, data: Any, workspace: Any) -> Any:
    if run_data.is_data(data):  # an estimator's inputs
        return data
    data = Data.create(data)
    location = data.data_location or DataLocation()
    if location.dataset is not None and location.dataset.id:
        dataset = AbstractDataset.get_by_id(workspace, location.dataset.id)
    elif location.dataset is not None and location.dataset.name:
        dataset = AbstractDataset.get_by_name(workspace, location.dataset.name, location.dataset.version or "latest")
    elif location.data_path is not None:
        store = Datastore.get(workspace, location.data_path.datastore_name or "")
        dataset = FileDatasetFactory.from_files((store, location.data_path.relative_path or "/"), validate=False)
    elif location.uri is not None:
        dataset = FileDatasetFactory.from_files(location.uri.path or "", validate=False)
    else:
        raise UserErrorException(f"data['{name}'] of the run configuration does not say where the data is.")
    mode = (data.mechanism or DIRECT).lower()
    return DatasetConsumptionConfig(data.environment_variable_name or name, dataset, mode, data.path_on_compute)


def _output(name: str, output: Any, workspace: Any) -> OutputDatasetConfig:
    if isinstance(output, OutputDatasetConfig):
        return output
    if not isinstance(output, OutputData):
        raise UserErrorException(
            f"output_data['{name}'] of the run configuration must be an OutputData, not {output!r}."
        )
    place = output.output_location.data_path if output.output_location is not None else None
    destination = None
    if place is not None:
        destination = (Datastore.get(workspace, place.datastore_name or ""), place.relative_path)
    options = output.additional_options or OutputOptions()
    made = OutputFileDatasetConfig(name, destination, options.path_on_compute)
    mode = (output.mechanism or MOUNT).lower()
    if mode not in (MOUNT, UPLOAD):
        raise UserErrorException(
            f"output_data['{name}'] of the run configuration is mounted or uploaded, not {mode!r}."
        )
    if mode == UPLOAD:
        upload = options.upload_options
        globs = upload.source_globs.patterns if upload is not None and upload.source_globs is not None else None
        made = made.as_upload(bool(upload is not None and upload.overwrite), globs)
    wanted = options.registration_options
    if wanted is None or not wanted.name:
        return made
    return made.register_on_complete(wanted.name, wanted.description, wanted.tags)
