"""`Dataset.Tabular`: makes datasets of rows and columns."""

from __future__ import annotations

import os

from lapis.domain import data
from lapis.errors import DatasetValidationError, NotThereYet, UserErrorException
from lapis.files import path_columns
from lapis.later import TYPE_CHECKING
from lapis.sdk.data import abstract_datastore, data_reference, database_datastore, tabular_dataset
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.sdk.data.file_dataset import FileDatasetFactory
from lapis.tables import query_result
from lapis.tables import types as table_types

if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    import pandas

    from lapis.sdk.data.database_datastore import DatabaseDatastore
    from lapis.sdk.data.file_dataset import Place
    from lapis.sdk.data.tabular_dataset import TabularDataset
    from lapis.tables.types import DataType, FileEncoding, PromoteHeadersBehavior


class TabularDatasetFactory:
    @staticmethod
    def from_delimited_files(
        path: Place | Sequence[Place],
        validate: bool = True,
        include_path: bool = False,
        infer_column_types: bool = True,
        set_column_types: Mapping[str, DataType] | None = None,
        separator: str = ",",
        header: PromoteHeadersBehavior | bool = True,
        partition_format: str | None = None,
        support_multi_line: bool = False,
        empty_as_string: bool = False,
        encoding: FileEncoding | str = "utf8",
    ) -> TabularDataset:
        """Files of rows whose values are separated by a character. With `validate` their first rows are read at once.

        A value in quotes may hold line breaks whether or not `support_multi_line` says so.
        """
        reader = delimited(separator, header, set_column_types, include_path, partition_format)
        reader.update(
            infer=bool(infer_column_types),
            empty_as_string=bool(empty_as_string),
            encoding=table_types.encoding_name(encoding),
        )
        return _made(path, validate, reader)

    @staticmethod
    def from_parquet_files(
        path: Place | Sequence[Place],
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Mapping[str, DataType] | None = None,
        partition_format: str | None = None,
    ) -> TabularDataset:
        return _made(path, validate, in_parquet(set_column_types, include_path, partition_format))

    @staticmethod
    def from_json_lines_files(
        path: Place | Sequence[Place],
        validate: bool = True,
        include_path: bool = False,
        set_column_types: Mapping[str, DataType] | None = None,
        partition_format: str | None = None,
        invalid_lines: str = "error",
        encoding: FileEncoding | str = "utf8",
    ) -> TabularDataset:
        """Files with one JSON object on each line. A line that is none is an error, or dropped."""
        if invalid_lines not in ("error", "drop"):
            raise UserErrorException(f"invalid_lines is 'error' or 'drop', not {invalid_lines!r}.")
        return _made(path, validate, {
            "format": "json_lines",
            "types": table_types.column_types(set_column_types),
            "invalid_lines": invalid_lines,
            "encoding": table_types.encoding_name(encoding),
            "include_path": bool(include_path),
            "partition_format": path_columns.check_format(partition_format),
        })  # fmt: skip

    @staticmethod
    def from_sql_query(
        query: Any, validate: bool = True, set_column_types: Any = None, query_timeout: Any = 30
    ) -> TabularDataset:
        """The rows of a query, `(datastore, 'select ...')` or a DataPath of them. It is run whenever they are read.

        `query_timeout` is how many seconds to wait for the next rows, 0 for ever.
        """
        from datetime import timedelta

        store, text = _store_and_query(query)
        seconds = query_timeout.total_seconds() if isinstance(query_timeout, timedelta) else query_timeout
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e6:
            raise UserErrorException(f"query_timeout is a number of seconds, not {query_timeout!r}.")
        if validate:
            query_result.driver_of({"name": store.name, "type": store.datastore_type})
        source = {"kind": data.QUERY, "datastore": store.name, "query": text, "timeout": seconds}
        reader = {
            "format": "query",
            "types": table_types.column_types(set_column_types),
            "include_path": False,
            "partition_format": None,
        }
        return _defined([source], reader, store.workspace, validate)

    @staticmethod
    def register_pandas_dataframe(
        dataframe: pandas.DataFrame,
        target: Any,
        name: str,
        description: str | None = None,
        tags: Mapping[str, Any] | None = None,
        show_progress: bool = True,
        row_group_size: int | None = None,
        make_target_path_unique: bool = True,
    ) -> TabularDataset:
        """Write a data frame to a place in a datastore, as Parquet, and register it, as a new version of the name."""
        import tempfile
        from uuid import uuid4

        store, inside = place_in_datastore(target)
        if not hasattr(dataframe, "columns") or not hasattr(dataframe, "to_parquet"):
            raise UserErrorException(f"dataframe must be a pandas DataFrame, not {type(dataframe).__name__}.")
        odd = [column for column in dataframe.columns if not isinstance(column, str)]
        if odd:
            raise UserErrorException(f"Names of columns must be text; {odd[0]!r} is not. Rename it first.")
        if make_target_path_unique:
            inside = "/".join(filter(None, [inside, uuid4().hex]))
        from lapis.tables.arrow import pa, parquet

        with tempfile.TemporaryDirectory() as folder:
            written = os.path.join(folder, "part-00000.parquet")
            try:
                table = pa.Table.from_pandas(dataframe, preserve_index=False)
                parquet.write_table(table, written, row_group_size=row_group_size)
            except (pa.ArrowException, ValueError) as error:
                raise UserErrorException(f"The data frame cannot be written as Parquet: {error}") from None
            store.upload_files([written], None, inside or None, True, show_progress)
        made = TabularDatasetFactory.from_parquet_files((store, f"{inside}/part-00000.parquet".lstrip("/")))
        return made.register(store.workspace, name, description, tags, create_new_version=True)

    @staticmethod
    def register_dask_dataframe(
        dataframe: Any, target: Any, name: str, description: Any = None, tags: Any = None, show_progress: bool = True
    ) -> TabularDataset:
        raise NotThereYet("Dataset.Tabular.register_dask_dataframe")

    @staticmethod
    def register_spark_dataframe(
        dataframe: Any, target: Any, name: str, description: Any = None, tags: Any = None, show_progress: bool = True
    ) -> TabularDataset:
        raise NotThereYet("Dataset.Tabular.register_spark_dataframe")


AbstractDataset.Tabular = TabularDatasetFactory


def delimited(separator: Any, header: Any, types: Any, include_path: bool, partition_format: Any) -> dict[str, Any]:
    """How files of separated values are read, with the rest as it is without being asked for."""
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\r':
        raise UserErrorException(f"separator must be one character, not {separator!r}.")
    return {
        "format": "delimited",
        "separator": separator,
        "header": table_types.header_behaviour(header),
        "infer": True,
        "types": table_types.column_types(types),
        "empty_as_string": False,
        "encoding": table_types.encoding_name("utf8"),
        "include_path": bool(include_path),
        "partition_format": path_columns.check_format(partition_format),
    }


def in_parquet(types: Any, include_path: bool, partition_format: Any) -> dict[str, Any]:
    return {
        "format": "parquet",
        "types": table_types.column_types(types),
        "include_path": bool(include_path),
        "partition_format": path_columns.check_format(partition_format),
    }


def _made(path: Any, validate: bool, reader: dict[str, Any]) -> TabularDataset:
    files = FileDatasetFactory.from_files(path, validate=False)
    return _defined(files._definition["sources"], reader, files._workspace, validate)


def _defined(sources: list[Any], reader: dict[str, Any], workspace: Any, validate: bool) -> TabularDataset:
    definition = {"type": "tabular", "sources": sources, "reader": reader, "steps": []}
    made: TabularDataset = tabular_dataset.TabularDataset._of(definition, workspace)
    if not validate:
        return made
    import lapis.tables.engine  # noqa: F401  # the packages it needs are the user's to install: not a fault of the data

    try:
        made._columns()
    except UserErrorException as error:
        raise DatasetValidationError(error.message, error) from None
    return made


def _store_and_query(query: Any) -> tuple[DatabaseDatastore, str]:
    pair: Any = (query._store, query.path_on_datastore) if isinstance(query, data_reference.DataPath) else query
    if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], abstract_datastore.AbstractDatastore):
        raise UserErrorException(f"query must be (datastore, 'select ...') or a DataPath of them, not {query!r}.")
    store, text = pair
    if not isinstance(store, database_datastore.DatabaseDatastore):
        raise UserErrorException(
            f"Datastore '{store.name}' is no database, so no query can be put to it. "
            "Dataset.Tabular.from_delimited_files() and its kin read its files."
        )
    if not isinstance(text, str) or not text.strip():
        raise UserErrorException(
            f"The query to datastore '{store.name}' must be text such as 'select ...', not {text!r}."
        )
    return store, text.strip().rstrip(";")


def place_in_datastore(target: Any) -> tuple[Any, str]:
    """A datastore and a path in it."""
    store, path = target, ""
    if isinstance(target, data_reference.DataReference):
        store, path = target.datastore, target.path_on_datastore or ""
    elif isinstance(target, data_reference.DataPath):
        store, path = target._datastore, target.path_on_datastore or ""
    elif isinstance(target, tuple) and len(target) == 2:
        store, path = target
    if not isinstance(store, abstract_datastore.AbstractDatastore) or not isinstance(path, str):
        raise UserErrorException(f"target must be a datastore or (datastore, 'path'), not {target!r}.")
    if isinstance(store, database_datastore.DatabaseDatastore):
        store._where()
    return store, path.strip("/")
