"""`Dataset`: the door to datasets by name, and to the factories that make them."""

from __future__ import annotations

from lapis.errors import NotThereYet, UserErrorException
from lapis.later import TYPE_CHECKING
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.sdk.data.file_dataset import FileDatasetFactory
from lapis.sdk.data.tabular_factory import TabularDatasetFactory

if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn, Sequence

    from lapis.sdk.data.file_dataset import FileDataset, Place
    from lapis.sdk.data.tabular_dataset import TabularDataset
    from lapis.sdk.workspace.workspace import Workspace
    from lapis.tables.types import FileEncoding, PromoteHeadersBehavior, SkipLinesBehavior


class Dataset:
    File = FileDatasetFactory
    Tabular = TabularDatasetFactory

    class Scenario:
        TRAINING = "training"
        VALIDATION = "validation"
        INFERENCING = "inferencing"

    def __init__(self, definition: Any, workspace: Any = None, name: Any = None, id: Any = None) -> None:
        raise UserErrorException("A dataset is made by Dataset.File.from_files(path) or by one of Dataset.Tabular.")

    @staticmethod
    def get_by_name(
        workspace: Workspace, name: str, version: int | str | None = "latest", **kwargs: Any
    ) -> FileDataset | TabularDataset:
        return AbstractDataset.get_by_name(workspace, name, version)

    @staticmethod
    def get_by_id(workspace: Workspace, id: str, **kwargs: Any) -> FileDataset | TabularDataset:
        return AbstractDataset.get_by_id(workspace, id)

    @staticmethod
    def get_all(workspace: Workspace) -> dict[str, FileDataset | TabularDataset]:
        return AbstractDataset.get_all(workspace)

    # -- as the first releases of SDK v1 had it, before there were Dataset.File and Dataset.Tabular

    @staticmethod
    def get(workspace: Workspace, name: str | None = None, id: str | None = None) -> FileDataset | TabularDataset:
        if (name is None) == (id is None):
            raise UserErrorException("Dataset.get() takes a name or an id.")
        return Dataset.get_by_id(workspace, id) if id is not None else Dataset.get_by_name(workspace, str(name))

    @staticmethod
    def list(workspace: Workspace) -> list[FileDataset | TabularDataset]:
        return [*Dataset.get_all(workspace).values()]

    @staticmethod
    def from_delimited_files(
        path: Place | Sequence[Place],
        separator: str = ",",
        header: PromoteHeadersBehavior | bool = True,
        encoding: FileEncoding | str = "utf8",
        quoting: bool = False,
        infer_column_types: bool = True,
        skip_rows: int = 0,
        skip_mode: SkipLinesBehavior | None = None,
        comment: str | None = None,
        include_path: bool = False,
        archive_options: Any = None,
        partition_format: str | None = None,
    ) -> TabularDataset:
        if skip_rows or comment or archive_options:
            raise NotThereYet("Dataset.from_delimited_files(skip_rows=, comment=, archive_options=) is not there yet.")
        return TabularDatasetFactory.from_delimited_files(
            path, True, include_path, infer_column_types, None, separator, header, partition_format, quoting,
            encoding=encoding,
        )  # fmt: skip

    @staticmethod
    def from_parquet_files(
        path: Place | Sequence[Place], include_path: bool = False, partition_format: str | None = None
    ) -> TabularDataset:
        return TabularDatasetFactory.from_parquet_files(path, True, include_path, None, partition_format)

    @staticmethod
    def from_json_files(
        path: Place | Sequence[Place],
        encoding: FileEncoding | str = "utf8",
        flatten_nested_arrays: bool = False,
        include_path: bool = False,
        partition_format: str | None = None,
    ) -> TabularDataset:
        """Files with one JSON object on each line."""
        if flatten_nested_arrays:
            raise NotThereYet("Dataset.from_json_files(flatten_nested_arrays=True) is not there yet.")
        return TabularDatasetFactory.from_json_lines_files(
            path, True, include_path, None, partition_format, encoding=encoding
        )

    @staticmethod
    def from_binary_files(path: Place | Sequence[Place]) -> FileDataset:
        return FileDatasetFactory.from_files(path)


_INSTEAD = "Make the dataset by Dataset.File or Dataset.Tabular: it has calls of its own."


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Any = None, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotThereYet(f"Dataset.{name}", _INSTEAD)

    refuse.__name__ = name
    return refuse


for _name in ("auto_read_files", "from_excel_files", "from_pandas_dataframe", "from_sql_query"):
    setattr(Dataset, _name, staticmethod(_refusal(_name)))
for _name in (
    "archive", "compare_profiles", "create_snapshot", "delete_snapshot", "deprecate", "diff", "generate_profile",
    "get_all_snapshots", "get_definition", "get_definitions", "get_profile", "get_snapshot", "head", "reactivate",
    "register", "sample", "to_pandas_dataframe", "to_spark_dataframe", "update", "update_definition",
):  # fmt: skip
    setattr(Dataset, _name, _refusal(_name))
for _name in (
    "definition", "definition_version", "description", "file_type", "id", "is_visible", "name", "state", "tags",
    "workspace",
):  # fmt: skip
    setattr(Dataset, _name, property(_refusal(_name)))
