"""What a run writes, read as a table: a description of rows in files that are not there yet."""

from __future__ import annotations

import copy
from typing import Any, Iterable, Sequence

from lapis.domain.data import check_glob
from lapis.errors import UserErrorException
from lapis.sdk.data.abstract_dataset import checked_part, checked_seed
from lapis.sdk.data.consumption import DIRECT, MOUNT, DatasetConsumptionConfig
from lapis.sdk.data.output_dataset_config import UPLOAD, OutputDatasetConfig, OutputFileDatasetConfig, UploadOptions
from lapis.sdk.data.tabular_dataset import column_names


class OutputTabularDatasetConfig(OutputDatasetConfig):
    """The run writes the same files; the dataset that is kept of them is a table."""

    def __init__(self, **kwargs: Any) -> None:
        raise UserErrorException(
            "A table that a run writes is made by OutputFileDatasetConfig().read_delimited_files() and "
            "read_parquet_files()."
        )

    @staticmethod
    def _of(files: OutputFileDatasetConfig, reader: dict[str, Any], path_glob: Any) -> OutputTabularDatasetConfig:
        made = OutputTabularDatasetConfig.__new__(OutputTabularDatasetConfig)
        made.__dict__.update(vars(files))
        made._reader, made._steps, made._glob = reader, [], check_glob(path_glob) if path_glob is not None else None
        return made

    _reader: dict[str, Any]
    _steps: list[dict[str, Any]]

    def as_mount(self) -> OutputTabularDatasetConfig:
        return self._with(mode=MOUNT, _options=None)

    def as_upload(
        self, overwrite: bool = False, source_globs: str | Iterable[str] | None = None
    ) -> OutputTabularDatasetConfig:
        return self._with(mode=UPLOAD, _options=UploadOptions(overwrite, source_globs))

    def as_input(self, name: str | None = None) -> DatasetConsumptionConfig:
        return DatasetConsumptionConfig(name or self.name, self, DIRECT)

    def keep_columns(self, columns: str | Sequence[str]) -> OutputTabularDatasetConfig:
        return self._with_step(op="keep", columns=column_names("keep_columns", columns))

    def drop_columns(self, columns: str | Sequence[str]) -> OutputTabularDatasetConfig:
        return self._with_step(op="drop", columns=column_names("drop_columns", columns))

    def random_split(
        self, percentage: float, seed: int | None = None
    ) -> tuple[OutputTabularDatasetConfig, OutputTabularDatasetConfig]:
        """Two tables of the same files that share no row; the first has about that part of them."""
        part, chosen = checked_part("random_split", percentage), checked_seed(seed)
        first, second = (self._with_step(op="split", percentage=part, seed=chosen, part=number) for number in (0, 1))
        return first, second

    def _with_step(self, **step: Any) -> OutputTabularDatasetConfig:
        return self._with(_steps=[*self._steps, step])

    def _with(self, **changes: Any) -> OutputTabularDatasetConfig:
        changed = copy.copy(self)
        changed.__dict__.update(changes)
        return changed

    def _definition(self, source: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tabular", "sources": [source], "reader": self._reader, "steps": self._steps}
