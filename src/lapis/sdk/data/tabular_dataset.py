"""Datasets of rows and columns: files or a query, how they are read, and steps. Rows are read when they are wanted."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Sequence, overload

from lapis.domain.data import LOCAL, QUERY, File, shown_url
from lapis.errors import DatasetTimestampMissingError, NotThereYet, UserErrorException
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.sdk.data.file_dataset import FileDataset, FileDatasetFactory
from lapis.sdk.workspace.workspace import Workspace
from lapis.tables.column_filter import Column, Condition, parts_of, utc

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from lapis.tables.engine import Table

_NO_STREAMS = "Lapis has no columns that hold files. Dataset.File.from_files() makes a dataset of files."
_NO_PROFILES = "to_pandas_dataframe().describe() says the same of its columns."
_BY_FILE = "to_parquet_files().download() gives a file that Dask and Spark read."


class TabularDataset(AbstractDataset):
    _unit = "rows"

    def __init__(self) -> None:
        raise UserErrorException("A TabularDataset is made by Dataset.Tabular.from_delimited_files(path) and its kin.")

    # -- rows out

    def to_pandas_dataframe(self, on_error: str = "null", out_of_range_datetime: str = "null") -> pandas.DataFrame:
        """All rows, in memory. A value that is none of the type asked for is missing, or with 'fail' an error."""
        for name, choice in (("on_error", on_error), ("out_of_range_datetime", out_of_range_datetime)):
            if choice not in ("null", "fail"):
                raise UserErrorException(f"{name} is 'null' or 'fail', not {choice!r}.")
        from lapis.tables import engine

        return engine.to_pandas(self._table(on_error), on_error, out_of_range_datetime)

    def to_csv_files(self, separator: str = ",") -> FileDataset:
        """Its rows in a file with separators, written piece by piece; a dataset of that file."""
        if not isinstance(separator, str) or len(separator) != 1:
            raise UserErrorException(f"separator must be one character, not {separator!r}.")
        from lapis.tables import engine

        return self._written(lambda folder: engine.write_csv(self._table(), folder, separator), "csv" + separator)

    def to_parquet_files(self) -> FileDataset:
        """Its rows in a Parquet file, written piece by piece; a dataset of that file."""
        from lapis.tables import engine

        return self._written(lambda folder: engine.write_parquet(self._table(), folder), "parquet")

    # -- rows

    sample = AbstractDataset.take_sample

    def filter(self, expression: Condition) -> TabularDataset:
        """The rows for which a condition holds: `ds.filter((ds['age'] > 30) & ~(ds['town'] == 'Ghent'))`."""
        return self._with_step(op="filter", condition=parts_of(expression))

    @overload
    def __getitem__(self, key: str) -> Column: ...  # type: ignore[overload-overlap]  # a text is a sequence of texts too

    @overload
    def __getitem__(self, key: Sequence[str] | Condition) -> TabularDataset: ...

    def __getitem__(self, key: str | Sequence[str] | Condition) -> Column | TabularDataset:
        """`ds['age']` is a column to make conditions of, `ds[['age', 'town']]` keeps columns, `ds[condition]` rows."""
        if isinstance(key, str):
            return Column(key)
        if isinstance(key, (list, tuple)):
            return self.keep_columns(list(key))
        if isinstance(key, Condition):
            return self.filter(key)
        raise UserErrorException(f"A table is asked for a column, a list of them or a condition, not {key!r}.")

    # -- columns

    def keep_columns(self, columns: str | Sequence[str], validate: bool = False) -> TabularDataset:
        names = column_names("keep_columns", columns)
        made = self._with_step(op="keep", columns=names)
        made._forget_timestamps(lambda name: name in names)
        if validate:
            made._columns()
        return made

    def drop_columns(self, columns: str | Sequence[str]) -> TabularDataset:
        names = column_names("drop_columns", columns)
        made = self._with_step(op="drop", columns=names)
        made._forget_timestamps(lambda name: name not in names)
        return made

    # -- time

    @property
    def timestamp_columns(self) -> tuple[str | None, str | None]:
        """The column of the rows' times, and that of their partitions' times."""
        named = self._definition.get("timestamps") or {}
        return named.get("timestamp"), named.get("partition_timestamp")

    def with_timestamp_columns(
        self,
        timestamp: str | None = None,
        partition_timestamp: str | None = None,
        validate: bool = False,
        **kwargs: Any,
    ) -> TabularDataset:
        """The same rows, knowing which column says when they happened; without a name it is forgotten."""
        fine = timestamp or kwargs.get("fine_grain_timestamp")
        coarse = partition_timestamp or kwargs.get("coarse_grain_timestamp")
        for name in (fine, coarse):
            if name is not None and not isinstance(name, str):
                raise UserErrorException(f"A timestamp column is named by text, not {name!r}.")
        if fine is None and coarse is not None:
            raise UserErrorException(f"partition_timestamp '{coarse}' goes with a timestamp column, and none is named.")
        if fine is not None and fine == coarse:
            raise UserErrorException(f"timestamp and partition_timestamp are both '{fine}'; they must differ.")
        definition = dict(self._definition, timestamps={"timestamp": fine, "partition_timestamp": coarse})
        made = TabularDataset._of(definition, self._workspace)
        if validate:
            made._check_timestamps()
        return made

    def time_before(self, end_time: datetime, include_boundary: bool = True, validate: bool = True) -> TabularDataset:
        return self._between("time_before", None, end_time, include_boundary, validate)

    def time_after(self, start_time: datetime, include_boundary: bool = True, validate: bool = True) -> TabularDataset:
        return self._between("time_after", start_time, None, include_boundary, validate)

    def time_between(
        self, start_time: datetime, end_time: datetime, include_boundary: bool = True, validate: bool = True
    ) -> TabularDataset:
        return self._between("time_between", start_time, end_time, include_boundary, validate)

    def time_recent(
        self, time_delta: timedelta, include_boundary: bool = True, validate: bool = True
    ) -> TabularDataset:
        """The rows of the last days, hours, ..., counted from this call. Times of tables are UTC."""
        if not isinstance(time_delta, timedelta):
            raise UserErrorException(f"time_recent() takes a timedelta, not {time_delta!r}.")
        return self._between("time_recent", datetime.now(timezone.utc) - time_delta, None, include_boundary, validate)

    # -- partitions

    def partition_by(
        self,
        partition_keys: str | Sequence[str],
        target: Any,
        name: str | None = None,
        show_progress: bool = True,
        partition_as_file_dataset: bool = False,
    ) -> TabularDataset:
        """Write the rows to a place in a datastore, in Parquet files by the values of some columns; the new dataset."""
        import tempfile

        from lapis.sdk.data.tabular_factory import TabularDatasetFactory, place_in_datastore
        from lapis.tables import engine

        if partition_as_file_dataset:
            raise NotThereYet("TabularDataset.partition_by(partition_as_file_dataset=True)")
        keys = column_names("partition_by", partition_keys)
        store, inside = place_in_datastore(target)
        with tempfile.TemporaryDirectory() as folder:
            written = os.path.join(folder, "rows")
            engine.write_partitions(self._table(), written, keys)
            inside = "/".join(filter(None, [inside, os.urandom(16).hex()]))
            store.upload(written, inside, True, show_progress)
        layout = "".join(f"/{{{key}}}" for key in keys) + "/*.parquet"
        made = TabularDatasetFactory.from_parquet_files((store, f"{inside}/**/*.parquet"), partition_format=layout)
        return made if name is None else made.register(store.workspace, name, create_new_version=True)

    # -- later

    def download(
        self, stream_column: Any, target_path: Any = None, overwrite: bool = False, ignore_not_found: bool = True
    ) -> NoReturn:
        raise NotThereYet("TabularDataset.download", _NO_STREAMS)

    def mount(self, stream_column: Any, mount_point: Any = None) -> NoReturn:
        raise NotThereYet("TabularDataset.mount", _NO_STREAMS)

    def get_profile(self, workspace: Workspace | None = None) -> NoReturn:
        raise NotThereYet("TabularDataset.get_profile", _NO_PROFILES)

    def get_profile_runs(self, workspace: Workspace | None = None) -> NoReturn:
        raise NotThereYet("TabularDataset.get_profile_runs", _NO_PROFILES)

    def submit_profile_run(self, compute_target: Any, experiment: Any, cache_datastore_name: Any = None) -> NoReturn:
        raise NotThereYet("TabularDataset.submit_profile_run", _NO_PROFILES)

    def to_dask_dataframe(
        self, sample_size: int = 10000, dtypes: Any = None, on_error: str = "null", out_of_range_datetime: str = "null"
    ) -> NoReturn:
        raise NotThereYet("TabularDataset.to_dask_dataframe", _BY_FILE)

    def to_spark_dataframe(self) -> NoReturn:
        raise NotThereYet("TabularDataset.to_spark_dataframe", _BY_FILE)

    # -- inside

    def _as_files(self) -> FileDataset:
        sources = {"type": "file", "sources": self._definition["sources"], "steps": []}
        return FileDataset._of(sources, self._workspace)

    def _files(self) -> list[File]:
        return self._as_files()._files()

    @property
    def _partition_format(self) -> str | None:
        return self._definition["reader"]["partition_format"]  # type: ignore[no-any-return]

    @property
    def _query(self) -> dict[str, Any] | None:
        """The source, where it is a query and no files."""
        source: dict[str, Any] = self._definition["sources"][0]
        return source if source["kind"] == QUERY else None

    def _recorded(self, workspace: Workspace) -> list[dict[str, Any]]:
        self._belongs_to(workspace)
        return [] if self._query else self._as_files()._recorded(workspace)

    def _table(self, on_error: str = "null") -> Table:
        from lapis.tables import engine

        return engine.Table(self._definition, self._table_query() or self._table_files(), on_error)

    def _table_query(self) -> list[Any]:
        from lapis.sdk.data.datastore import Datastore
        from lapis.tables.query import Query
        from lapis.tables.query_result import open_query

        source = self._query
        if source is None:
            return []
        if self._workspace is None:
            raise UserErrorException(f"Which workspace datastore '{source['datastore']}' belongs to is not known.")
        store = Datastore(self._workspace, source["datastore"])
        name = f"the query to datastore '{store.name}'"
        return [Query(name, lambda: open_query(store._access(), source["query"], source["timeout"]))]

    def _table_files(self) -> list[Any]:
        from lapis.files import path_columns
        from lapis.tables.files import TableFile

        reader = self._definition["reader"]
        files = []
        for file in self._files():
            constants = path_columns.values(file, reader["include_path"], reader["partition_format"])
            files.append(TableFile(shown_url(file.place), file.place, _fetcher(file, self._workspace), constants))
        if not files:
            raise UserErrorException("The dataset holds no file.")
        return files

    def _columns(self) -> pyarrow.Schema:
        """Its schema. The first rows are read for it: an error where they cannot be."""
        return self._table().schema()

    def _written(self, write: Callable[[str], None], how: str) -> FileDataset:
        """Written once for the same rows: the folder is named by the definition and the state of the files."""
        from lapis.files.layout import describe_all
        from lapis.tables.cache import table_cache

        files = [] if self._query else [file.recorded() for file in describe_all(self._files())]
        known = files and all(file["mark"] is not None for file in files)  # each says what state it is in
        what = [self._definition, files, how, None if known else os.urandom(16).hex()]
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]
        return FileDatasetFactory.from_files(table_cache().written(key, write), validate=False)

    def _between(self, call: str, start: Any, end: Any, include: bool, validate: bool) -> TabularDataset:
        fine = self.timestamp_columns[0]
        if fine is None:
            raise DatasetTimestampMissingError(
                f"{call}() needs to know which column holds the time: ds.with_timestamp_columns('column') says it."
            )
        for moment in (start, end):
            if moment is not None and not isinstance(moment, (datetime, date)):
                raise UserErrorException(f"{call}() takes a datetime, not {moment!r}.")
        if start is not None and end is not None and _moment(start) > _moment(end):
            raise UserErrorException(f"{call}() was given a start ({start}) that is after its end ({end}).")
        if validate:
            self._check_timestamps()
        column = Column(fine)
        made = self
        if start is not None:
            made = made.filter(column >= _moment(start) if include else column > _moment(start))
        if end is not None:
            made = made.filter(column <= _moment(end) if include else column < _moment(end))
        return made

    def _check_timestamps(self) -> None:
        schema = self._columns()
        for name in filter(None, self.timestamp_columns):
            if name not in schema.names:
                raise UserErrorException(
                    f"There is no column '{name}' to take the time from. Columns: {', '.join(schema.names)}."
                )
            kind = str(schema.field(name).type)
            if not kind.startswith("timestamp"):
                raise UserErrorException(
                    f"Column '{name}' is {kind}, not a time. "
                    f"set_column_types={{'{name}': DataType.to_datetime(...)}} reads it as one."
                )

    def _forget_timestamps(self, there: Callable[[str], bool]) -> None:
        named = self._definition.get("timestamps")
        if named:
            self._definition["timestamps"] = {
                key: n if n is not None and there(n) else None for key, n in named.items()
            }


def _fetcher(file: File, workspace: Any) -> Callable[[], str] | None:
    """Brings its content to this machine; None where it is here."""
    if file.kind == LOCAL:
        return None

    def fetch() -> str:
        from lapis.files.layout import lay_out_files
        from lapis.sdk.data.object_places import bringer

        # a link of our own: the cache may be cleared while we read
        return lay_out_files([file], os.path.join(_scratch(), os.urandom(8).hex()), bring=bringer(workspace))[0]

    return fetch


_scratch_folder = ""


def _scratch() -> str:
    """A folder that goes when this process ends."""
    global _scratch_folder
    if not _scratch_folder:
        import atexit
        import shutil
        import tempfile

        _scratch_folder = tempfile.mkdtemp(prefix="lapis-tables-")
        atexit.register(shutil.rmtree, _scratch_folder, ignore_errors=True)
    return _scratch_folder


def column_names(call: str, columns: Any) -> list[str]:
    names = [columns] if isinstance(columns, str) else list(columns) if isinstance(columns, Sequence) else None
    if not names or not all(isinstance(name, str) for name in names):
        raise UserErrorException(f"{call}() takes the name of a column or a list of them, not {columns!r}.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserErrorException(f"{call}() was given column '{twice[0]}' more than once.")
    return names


def _moment(given: Any) -> datetime:
    return utc(given) if isinstance(given, datetime) else datetime(given.year, given.month, given.day)
