"""What a step writes, as a dataset that later steps read and that can be registered."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Mapping, Sequence, TypeVar

from lapis.domain.data import check_dataset_name, check_input_name, check_path_on_compute
from lapis.errors import InvalidPipeline
from lapis.sdk.pipelines.bindings import DIRECT, DOWNLOAD, MOUNT, InputPortBinding, PipelineData

if TYPE_CHECKING:
    from lapis.tables.types import DataType, PromoteHeadersBehavior

_Self = TypeVar("_Self", bound="PipelineOutputAbstractDataset")


class DatasetRegistration:
    """Under which name an output is registered when its step completes."""

    def __init__(self, name: str, create_new_version: bool) -> None:
        self._name, self._create_new_version = check_dataset_name(name), bool(create_new_version)

    @property
    def name(self) -> str:
        return self._name

    @property
    def create_new_version(self) -> bool:
        return self._create_new_version


class PipelineOutputAbstractDataset:
    """Of a `PipelineData`: as it is, or as it is read."""

    def __init__(self, pipeline_data: Any) -> None:
        if not isinstance(pipeline_data, PipelineData):
            raise InvalidPipeline(f"A dataset of a step's output is made of PipelineData, not {pipeline_data!r}.")
        self._pipeline_data = pipeline_data
        self._input_name: str | None = None
        self._mode, self._path_on_compute = DIRECT, None
        self._glob: str | None = None

    @property
    def name(self) -> str:
        return self._pipeline_data.name

    @property
    def input_name(self) -> str:
        return self._input_name or self.name

    def as_named_input(self: _Self, name: str) -> _Self:
        return self._with(_input_name=check_input_name(name))

    def register(self: _Self, name: str, create_new_version: bool = True) -> _Self:
        """Register it under a name, as its next version, when the step that writes it has completed."""
        self._pipeline_data._binding._dataset_registration = DatasetRegistration(name, create_new_version)
        self._pipeline_data._binding._dataset_output = self
        return self

    def create_input_binding(self) -> InputPortBinding:
        return InputPortBinding(self.input_name, self, self._mode, self._path_on_compute)

    def _definition(self, source: dict[str, Any]) -> dict[str, Any]:
        return {"type": "file", "sources": [source], "steps": []}

    def _with(self: _Self, **changes: Any) -> _Self:
        changed = copy.copy(self)
        changed.__dict__.update(changes)
        return changed

    def __deepcopy__(self: _Self, memo: Any) -> _Self:
        return self

    def __str__(self) -> str:
        return f"DatasetConsumptionConfig:{self.input_name}"

    __repr__ = __str__


class PipelineOutputFileDataset(PipelineOutputAbstractDataset):
    """Files that a step writes."""

    def as_mount(self, path_on_compute: str | None = None) -> PipelineOutputFileDataset:
        return self._with(_mode=MOUNT, _path_on_compute=check_path_on_compute(path_on_compute))

    def as_download(self, path_on_compute: str | None = None) -> PipelineOutputFileDataset:
        return self._with(_mode=DOWNLOAD, _path_on_compute=check_path_on_compute(path_on_compute))

    def as_direct(self) -> PipelineOutputFileDataset:
        return self._with(_mode=DIRECT, _path_on_compute=None)

    def parse_delimited_files(
        self,
        include_path: bool = False,
        separator: str = ",",
        header: PromoteHeadersBehavior | bool = True,
        partition_format: str | None = None,
        file_extension: str | None = "",
        set_column_types: Mapping[str, DataType] | None = None,
        quoted_line_breaks: bool = False,
    ) -> PipelineOutputTabularDataset:
        """The same as a table of rows whose values are separated by a character."""
        from lapis.sdk.data.tabular_factory import delimited

        reader = delimited(separator, header, set_column_types, include_path, partition_format)
        return PipelineOutputTabularDataset(self, {"reader": reader, "extension": file_extension})

    def parse_parquet_files(
        self,
        include_path: bool = False,
        partition_format: str | None = None,
        file_extension: str | None = ".parquet",
        set_column_types: Mapping[str, DataType] | None = None,
    ) -> PipelineOutputTabularDataset:
        """The same as a table of Parquet files."""
        from lapis.sdk.data.tabular_factory import in_parquet

        reader = in_parquet(set_column_types, include_path, partition_format)
        return PipelineOutputTabularDataset(self, {"reader": reader, "extension": file_extension})


class PipelineOutputTabularDataset(PipelineOutputAbstractDataset):
    """The rows of files that a step writes. A script gets them as `run.input_datasets[name]`."""

    def __init__(self, pipeline_output_dataset: Any, additional_transformations: Any) -> None:
        super().__init__(pipeline_output_dataset._pipeline_data)
        self._input_name = pipeline_output_dataset._input_name
        self._reader: dict[str, Any] = additional_transformations["reader"]
        self._steps: list[dict[str, Any]] = []
        extension = additional_transformations.get("extension")
        self._glob = f"**/*{extension}" if extension else None

    def keep_columns(self, columns: str | Sequence[str]) -> PipelineOutputTabularDataset:
        return self._with_step(op="keep", columns=[columns] if isinstance(columns, str) else list(columns))

    def drop_columns(self, columns: str | Sequence[str]) -> PipelineOutputTabularDataset:
        return self._with_step(op="drop", columns=[columns] if isinstance(columns, str) else list(columns))

    def random_split(
        self, percentage: float, seed: int | None = None
    ) -> tuple[PipelineOutputTabularDataset, PipelineOutputTabularDataset]:
        """Two tables that share no row; the first has about that part of them."""
        from lapis.sdk.data.abstract_dataset import checked_part, checked_seed

        part, chosen = checked_part("random_split", percentage), checked_seed(seed)
        first, second = (self._with_step(op="split", percentage=part, seed=chosen, part=number) for number in (0, 1))
        return first, second

    def _with_step(self, **step: Any) -> PipelineOutputTabularDataset:
        return self._with(_steps=[*self._steps, step])

    def _definition(self, source: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tabular", "sources": [source], "reader": self._reader, "steps": self._steps}
