"""What the inputs, outputs and arguments of a step stand for, in one form whatever SDK v1 lets them be."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, NamedTuple

from lapis.errors import InvalidPipeline
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.sdk.data.consumption import DIRECT, DatasetConsumptionConfig
from lapis.sdk.data.data_reference import DataPath, DataPathComputeBinding, DataReference
from lapis.sdk.data.output_dataset_config import Origin, OutputDatasetConfig
from lapis.sdk.pipelines.bindings import InputPortBinding, OutputPortBinding, PipelineData, PipelineDataset
from lapis.sdk.pipelines.output_datasets import PipelineOutputAbstractDataset
from lapis.sdk.pipelines.parameters import VARIABLE, PipelineParameter

_NO_VALUES: Mapping[str, Any] = {}


class Joined(NamedTuple):
    """An input that another step writes."""

    name: str
    source: Any  # OutputPortBinding or OutputDatasetConfig: what is written
    dataset: Any  # PipelineOutputAbstractDataset or OutputDatasetConfig, which say how it is read; None: a reference
    mode: str
    path_on_compute: str | None
    overwrite: bool

    @property
    def origin(self) -> Origin:
        return self.source._origin  # type: ignore[no-any-return]


def written_by(value: Any) -> Any:
    """What `outputs` names: an OutputPortBinding or an OutputDatasetConfig."""
    if isinstance(value, PipelineData):
        return value._binding
    if isinstance(value, PipelineOutputAbstractDataset):
        return value._pipeline_data._binding
    if isinstance(value, (OutputPortBinding, OutputDatasetConfig)):
        return value
    raise InvalidPipeline(
        f"An output of a step is PipelineData, an OutputFileDatasetConfig or an OutputPortBinding, not {value!r}."
    )


def joined(value: Any) -> Joined | None:
    """The input as one that a step writes; None if it comes from outside of the pipeline."""
    if isinstance(value, PipelineData):
        value = value.create_input_binding()
    if isinstance(value, OutputPortBinding):
        return Joined(value.name, value, None, "mount", None, False)
    if isinstance(value, OutputDatasetConfig):
        value = value.as_input()
    if isinstance(value, PipelineOutputAbstractDataset):
        source = value._pipeline_data._binding
        return Joined(value.input_name, source, value, value._mode, value._path_on_compute, False)
    if isinstance(value, DatasetConsumptionConfig):
        read = value.dataset
        if isinstance(read, OutputDatasetConfig):
            return Joined(value.name, read, read, value.mode, value.path_on_compute, False)
        if isinstance(read, PipelineOutputAbstractDataset):
            return Joined(value.name, read._pipeline_data._binding, read, value.mode, value.path_on_compute, False)
    if isinstance(value, InputPortBinding):
        found = value.bind_object
        if isinstance(found, PipelineData):
            found = found._binding
        if isinstance(found, OutputPortBinding):
            mode, path = value.bind_mode, value.path_on_compute
            return Joined(value.name, found, None, mode, path, bool(value.overwrite))
        inner = joined(found) if found is not None else None
        if inner is not None:
            return inner._replace(name=value.name, mode=value.bind_mode, path_on_compute=value.path_on_compute)
    return None


def from_outside(value: Any, values: Mapping[str, Any] = _NO_VALUES) -> Any:
    """An input that no step writes, as a run takes it: a DataReference or a DatasetConsumptionConfig."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], PipelineParameter):
        return _place(value[0], value[1], values)
    if isinstance(value, PipelineParameter):
        return _place(value, DataPathComputeBinding(), values)
    if isinstance(value, PipelineDataset):
        return DatasetConsumptionConfig(value.name, value.dataset, value.bind_mode, value.path_on_compute)
    if isinstance(value, InputPortBinding):
        found = value.bind_object
        if isinstance(found, DataReference):
            return DataReference(
                found.datastore, value.name, found.path_on_datastore, value.bind_mode, value.path_on_compute,
                bool(value.overwrite),
            )  # fmt: skip
        found = from_outside(found, values)
        return DatasetConsumptionConfig(value.name, found.dataset, value.bind_mode, value.path_on_compute)
    if isinstance(value, DatasetConsumptionConfig):
        if not isinstance(value.dataset, PipelineParameter):
            return value
        dataset = values.get(value.dataset.name, value.dataset.default_value)
        if isinstance(dataset, PipelineDataset):
            dataset = dataset.dataset
        if not isinstance(dataset, AbstractDataset):
            raise InvalidPipeline(
                f"Input '{value.name}' is a dataset, and its parameter '{value.dataset.name}' is {dataset!r}."
            )
        return DatasetConsumptionConfig(value.name, dataset, value.mode, value.path_on_compute)
    if isinstance(value, DataReference):
        return value
    if isinstance(value, AbstractDataset):
        raise InvalidPipeline(
            "A dataset among the inputs of a step needs a name: dataset.as_named_input('name'), with as_mount() or "
            "as_download() for files."
        )
    raise InvalidPipeline(f"An input of a step cannot be {type(value).__name__} ({value!r}).")


def _place(parameter: PipelineParameter, binding: Any, values: Mapping[str, Any]) -> DataReference:
    path = values.get(parameter.name, parameter.default_value)
    if not isinstance(path, DataPath):
        raise InvalidPipeline(
            f"Parameter '{parameter.name}' is an input, so it must be a DataPath: {path!r} is none. Other parameters "
            "go into arguments, datasets into DatasetConsumptionConfig(name, parameter)."
        )
    return path.create_data_reference(parameter.name, binding)


def parameters_in(*given: Iterable[Any]) -> list[PipelineParameter]:
    found = []
    for values in given:
        for value in values:
            if isinstance(value, tuple) and value:
                value = value[0]
            if isinstance(value, DatasetConsumptionConfig):
                value = value.dataset
            if isinstance(value, PipelineParameter):
                found.append(value)
    return found


def check_argument(step: str, value: Any, inputs: Iterable[Joined], outputs: Iterable[Any]) -> None:
    """An argument that stands for data names an input or an output of the step."""
    if isinstance(value, (PipelineData, InputPortBinding, OutputPortBinding, PipelineOutputAbstractDataset)):
        if _name_of(value, inputs, outputs) is None:
            raise InvalidPipeline(
                f"Step '{step}' has {value!r} in its arguments, and neither in its inputs nor in its outputs."
            )
    elif value is None:
        raise InvalidPipeline(f"Step '{step}' has None among its arguments.")


def as_word(value: Any, inputs: Iterable[Joined], outputs: Iterable[Any], values: Mapping[str, Any]) -> Any:
    """An argument as a run configuration takes it; what is not known here yet is a variable that is set later."""
    if isinstance(value, DatasetConsumptionConfig) and isinstance(value.dataset, PipelineParameter):
        return from_outside(value, values)
    if isinstance(value, (DatasetConsumptionConfig, OutputDatasetConfig, DataReference)):
        return value
    if isinstance(value, tuple) and value and isinstance(value[0], PipelineParameter):
        value = value[0]
    if isinstance(value, PipelineParameter):
        if isinstance(values[value.name], DataPath):
            return f"$AZUREML_DATAREFERENCE_{value.name}"
        return f"${VARIABLE}{value.name}"
    if isinstance(value, PipelineDataset):
        return from_outside(value, values)
    if isinstance(value, (PipelineData, InputPortBinding, OutputPortBinding, PipelineOutputAbstractDataset)):
        if isinstance(value, InputPortBinding) and joined(value) is None:
            value = from_outside(value, values)
            return value if isinstance(value, DatasetConsumptionConfig) else str(value)
        return _name_of(value, inputs, outputs)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _name_of(value: Any, inputs: Iterable[Joined], outputs: Iterable[Any]) -> Any:
    """What stands in the command line for an input or an output of the step; None if it is none of them."""
    wanted = joined(value)
    if wanted is None:
        return value  # from outside
    for each in inputs:
        same = each.origin is wanted.origin
        named = isinstance(value, (PipelineData, OutputPortBinding)) or each.name == wanted.name
        if same and named:
            if each.dataset is not None:  # whatever it holds: it is found by its name
                return DatasetConsumptionConfig(each.name, each.dataset, each.mode)
            return f"$AZUREML_DATAREFERENCE_{each.name}"
    for output in outputs:
        if output._origin is wanted.origin:
            return f"$AZUREML_DATAREFERENCE_{output._output_name}"
    return None


def is_table(read: Any) -> bool:
    return bool(read._definition({}).get("type") == "tabular")


def checked_mode(step: str, wanted: Joined) -> str:
    if wanted.dataset is not None and is_table(wanted.dataset) and wanted.mode != DIRECT:
        raise InvalidPipeline(f"Step '{step}': input '{wanted.name}' is a table, which is not mounted or downloaded.")
    return wanted.mode
