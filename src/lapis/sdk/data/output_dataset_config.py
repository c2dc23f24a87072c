"""What a run writes, kept in a datastore and, if wanted, registered as a dataset when the run completes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Iterable, Mapping, TypeVar
from uuid import uuid4

from lapis.domain.data import check_dataset_name, check_output_name, output_place
from lapis.domain.run import check_labels, check_text
from lapis.errors import UserErrorException
from lapis.files.path_columns import check_format
from lapis.sdk.data.consumption import MOUNT

if TYPE_CHECKING:
    from lapis.sdk.data.consumption import DatasetConsumptionConfig
    from lapis.sdk.data.output_table_config import OutputTabularDatasetConfig
    from lapis.tables.types import DataType, PromoteHeadersBehavior

UPLOAD = "upload"
_Self = TypeVar("_Self", bound="OutputDatasetConfig")


class RegistrationConfiguration:
    """Under which name an output is registered."""

    def __init__(self, name: str, description: str | None, tags: Any) -> None:
        self.name = check_dataset_name(name)
        self.description = check_text("description", description)
        self.tags = check_labels("tags", tags or {})


class MountOptions:
    def __init__(self, disable_metadata_cache: bool = False) -> None:
        self.disable_metadata_cache = disable_metadata_cache


class UploadOptions:
    """Whether files that are in the datastore are replaced, and which of the written files go there."""

    def __init__(self, overwrite: bool = False, source_globs: str | Iterable[str] | None = None) -> None:
        globs = [source_globs] if isinstance(source_globs, str) else list(source_globs or [])
        if not all(isinstance(glob, str) and glob for glob in globs):
            raise UserErrorException(f"source_globs is a list of patterns such as '*.csv', not {source_globs!r}.")
        self.overwrite = bool(overwrite)
        self.source_globs = globs or None


class Origin:
    """Which output it is, through all its copies; a pipeline notes here which of its steps writes it."""

    step: Any = None


class OutputDatasetConfig:
    """An output of a run. Put it into `arguments`: the script gets the path of a folder to write to."""

    def __init__(self, mode: str, name: str | None = None, **kwargs: Any) -> None:
        if mode not in (MOUNT, UPLOAD):
            raise UserErrorException(f"An output is mounted or uploaded, not {mode!r}.")
        self.mode = mode
        self._name = check_output_name(name) if name is not None else f"output_{uuid4().hex[:8]}"
        self.arg_val = f"DatasetOutputConfig:{self._name}"
        self._registration: RegistrationConfiguration | None = None
        self.destination: Any = None
        self.source: str | None = None
        self._options: UploadOptions | None = None
        self._origin = Origin()
        self._glob: str | None = None  # which of the written files the dataset is made of

    @property
    def name(self) -> str:
        return self._name

    def register_on_complete(
        self: _Self, name: str, description: str | None = None, tags: Mapping[str, Any] | None = None
    ) -> _Self:
        """Register what was written under a name, as its next version, when the run completes. A new configuration."""
        changed = copy.copy(self)
        changed._registration = RegistrationConfiguration(name, description, tags)
        return changed

    def as_input(self, name: str | None = None) -> DatasetConsumptionConfig:
        """What this output holds, as the input of a later step."""
        from lapis.sdk.data.consumption import DatasetConsumptionConfig

        return DatasetConsumptionConfig(name or self._name, self, MOUNT)

    def _definition(self, source: dict[str, Any]) -> dict[str, Any]:
        """The dataset of what was written, which lies at `source`."""
        return {"type": "file", "sources": [source], "steps": []}

    def __deepcopy__(self, memo: Any) -> OutputDatasetConfig:
        return self  # it is never changed, and its destination holds connections

    def __str__(self) -> str:
        return self.arg_val

    __repr__ = __str__


class TransformationMixin:
    def read_delimited_files(
        self,
        include_path: bool = False,
        separator: str = ",",
        header: PromoteHeadersBehavior | bool = True,
        partition_format: str | None = None,
        path_glob: str | None = None,
        set_column_types: Mapping[str, DataType] | None = None,
    ) -> OutputTabularDatasetConfig:
        """The same output, kept as a table of rows whose values are separated by a character."""
        from lapis.sdk.data.output_table_config import OutputTabularDatasetConfig
        from lapis.sdk.data.tabular_factory import delimited

        reader = delimited(separator, header, set_column_types, include_path, partition_format)
        return OutputTabularDatasetConfig._of(self, reader, path_glob)  # type: ignore[arg-type]

    def read_parquet_files(
        self,
        include_path: bool = False,
        partition_format: str | None = None,
        path_glob: str | None = None,
        set_column_types: Mapping[str, DataType] | None = None,
    ) -> OutputTabularDatasetConfig:
        """The same output, kept as a table of Parquet files."""
        from lapis.sdk.data.output_table_config import OutputTabularDatasetConfig
        from lapis.sdk.data.tabular_factory import in_parquet

        reader = in_parquet(set_column_types, include_path, partition_format)
        return OutputTabularDatasetConfig._of(self, reader, path_glob)  # type: ignore[arg-type]


class OutputFileDatasetConfig(OutputDatasetConfig, TransformationMixin):
    """Files that a run writes to a folder.

    `destination` is where they end up: `(datastore, 'path')`, in which `{run-id}` and `{output-name}` are filled in;
    without one, `dataset/{run-id}/{output-name}` of datastore workspaceblobstore. Mounted, the script writes straight
    to that place where the datastore is a folder; uploaded, its files are copied there when it has ended. `source` is
    the folder that the script writes to, if it is not to be one of Lapis' choice.

        output = OutputFileDatasetConfig("cleaned", destination=(datastore, "cleaned/{run-id}"))
        config = ScriptRunConfig("src", "clean.py", arguments=["--to", output.register_on_complete("cleaned")])

    In the script the path is the argument, `Run.get_context().output_datasets["cleaned"]`, and the environment variable
    `cleaned`.
    """

    def __init__(
        self, name: str | None = None, destination: Any = None, source: Any = None, partition_format: Any = None
    ) -> None:
        super().__init__(MOUNT, name)
        self.destination = _checked_destination(destination)
        self.source = source
        self._partition_format = check_format(partition_format)

    def as_mount(self, disable_metadata_cache: bool = False) -> OutputFileDatasetConfig:
        """The script writes straight to the destination where it can."""
        changed = copy.copy(self)
        changed.mode, changed._options = MOUNT, None
        return changed

    def as_upload(
        self, overwrite: bool = False, source_globs: str | Iterable[str] | None = None
    ) -> OutputFileDatasetConfig:
        """What the script wrote is copied to the destination when it has ended."""
        changed = copy.copy(self)
        changed.mode, changed._options = UPLOAD, UploadOptions(overwrite, source_globs)
        return changed

    def _definition(self, source: dict[str, Any]) -> dict[str, Any]:
        layout = {"partition_format": self._partition_format} if self._partition_format else {}
        return dict(super()._definition(source), **layout)


def _checked_destination(destination: Any) -> Any:
    from lapis.sdk.data.abstract_datastore import AbstractDatastore
    from lapis.sdk.data.data_reference import DataPath, DataReference

    if destination is None:
        return None
    if isinstance(destination, DataReference):
        destination = (destination.datastore, destination.path_on_datastore)
    elif isinstance(destination, DataPath):
        destination = (destination._datastore, destination.path_on_datastore)
    if not isinstance(destination, tuple) or len(destination) != 2 or not isinstance(destination[0], AbstractDatastore):
        raise UserErrorException(f"destination is a place in a datastore, (datastore, 'path'), not {destination!r}.")
    output_place(destination[1], "run", "output")  # a path that can be used
    return destination
