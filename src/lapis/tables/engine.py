"""Streams the rows of a tabular dataset: files or a query, then one step after the other, a piece of it at a time.

PyArrow does the work: it parses CSV, JSON lines and Parquet outside Python's lock, it runs on every Python that we
support, and most environments with pandas have it. Only the columns that the steps need are read, and `take` stops the
reading.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing
from datetime import datetime
from typing import Any, Callable, Generator, Iterable, Iterator, Mapping, Sequence

from lapis.domain.conditions import columns_of
from lapis.errors import DatasetExecutionError, UserErrorException
from lapis.tables.arrow import arrow_csv, arrow_dataset, needed, pa, parquet, pc
from lapis.tables.column_values import FAIL, NULL
from lapis.tables.files import DelimitedFiles, JsonLinesFiles, ParquetFiles, TableFile, TableFiles, Wider
from lapis.tables.query import QueryRows

_READERS: Mapping[str, Callable[..., TableFiles]] = {
    "delimited": DelimitedFiles,
    "json_lines": JsonLinesFiles,
    "parquet": ParquetFiles,
    "query": QueryRows,
}
_EARLIEST, _LATEST = datetime(1677, 9, 21, 0, 12, 44), datetime(2262, 4, 11, 23, 47, 16)  # what pandas can count in ns


class Table:
    """A definition on its files, or on its query."""

    def __init__(self, definition: Mapping[str, Any], files: Sequence[Any], on_error: str = NULL) -> None:
        self._steps: list[Mapping[str, Any]] = list(definition["steps"])
        reader = definition["reader"]
        made = _READERS.get(reader["format"])
        if made is None:
            raise UserErrorException(f"Files of kind {reader['format']!r} are not known to this release of Lapis.")
        self._files: TableFiles = made(files, reader, on_error)

    def schema(self) -> Any:
        """Names and types of its columns; an error where a step names one that is not there."""
        with closing(self._files):
            return self._planned()[-1]

    def run(self, work: Callable[[Any, Iterator[Any]], Any]) -> Any:
        """`work(schema, tables)` on the stream of rows; again from the start when the types turn out wider."""
        with closing(self._files):
            while True:
                try:
                    schemas = self._planned()
                    with closing(self._stream(schemas)) as stream:
                        return work(schemas[-1], stream)
                except Wider as found:
                    self._files.widen(found.types)
                except pa.ArrowException as error:
                    raise DatasetExecutionError(f"The table cannot be read or written: {error}", error) from None

    def _planned(self) -> list[Any]:
        """The schema before each step, and that after the last."""
        schemas = [self._files.schema()]
        for step in self._steps:
            schemas.append(_after(step, schemas[-1]))
        return schemas

    def _stream(self, schemas: Sequence[Any]) -> Generator[Any, None, None]:
        filters = []
        for step in self._steps:  # what comes before everything else may be done while reading
            if step["op"] != "filter":
                break
            filters.append(step["condition"])
        read = self._needed(schemas)

        def wanted(file: TableFile) -> bool:
            known = [each for each in filters if columns_of(each) <= set(file.constants)]
            if not known:
                return True
            row = pa.table({name: [value] for name, value in file.constants.items()})
            return all(_mask(row, each).to_pylist()[0] for each in known)

        def pushed(schema: Any, hands_off: set[str]) -> Any:
            found = [_pushable(each, schema, hands_off) for each in filters]
            found = [each for each in found if each is not None]
            joined = found[0] if found else None
            for each in found[1:]:
                joined = joined & each
            return joined

        stream: Iterator[Any] = self._files.tables(read, wanted, pushed)
        for number, step in enumerate(self._steps):
            stream = _applied(step, stream, schemas[number + 1])
        yield from stream

    def _needed(self, schemas: Sequence[Any]) -> list[str]:
        """The columns that must be read: those of the result, and those that conditions look at."""
        names = set(schemas[-1].names)
        for step in self._steps:
            if step["op"] == "filter":
                names |= columns_of(step["condition"])
        return [name for name in schemas[0].names if name in names]


def to_pandas(table: Table, on_error: str, out_of_range: str) -> Any:
    needed("pandas")

    def collect(schema: Any, tables: Iterable[Any]) -> Any:
        pieces = list(tables)
        return pa.concat_tables(pieces) if pieces else schema.empty_table()

    whole = table.run(collect)
    for number, field in enumerate(whole.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit != "ns":
            whole = whole.set_column(number, field.name, _in_nanoseconds(whole[number], field.name, out_of_range))
    return whole.to_pandas(split_blocks=True, self_destruct=True)


def _in_nanoseconds(values: Any, column: str, out_of_range: str) -> Any:
    """As SDK v1 gives times to pandas. Those that do not fit are missing, or an error."""
    target = pa.timestamp("ns")
    try:
        return pc.cast(values, target)
    except pa.ArrowInvalid:
        bounds = [pa.scalar(each, values.type) for each in (_EARLIEST, _LATEST)]
        fits = pc.and_(pc.greater(values, bounds[0]), pc.less(values, bounds[1]))
        if out_of_range == FAIL:
            example = values.filter(pc.invert(fits))[0].as_py()
            raise DatasetExecutionError(
                f"Column '{column}' holds {example}, which pandas cannot hold. With out_of_range_datetime='null' such "
                "times are missing."
            ) from None
        return pc.cast(pc.if_else(fits, values, pa.scalar(None, values.type)), target)


def write_csv(table: Table, folder: str, separator: str) -> None:
    def write(schema: Any, tables: Iterable[Any]) -> None:
        options = arrow_csv.WriteOptions(delimiter=separator)
        with arrow_csv.CSVWriter(os.path.join(folder, "part-00000.csv"), schema, write_options=options) as file:
            for each in tables:
                file.write_table(each)

    table.run(write)


def write_parquet(table: Table, folder: str) -> None:
    def write(schema: Any, tables: Iterable[Any]) -> None:
        with parquet.ParquetWriter(os.path.join(folder, "part-00000.parquet"), schema) as file:
            for each in tables:
                file.write_table(each)

    table.run(write)


def write_partitions(table: Table, folder: str, keys: Sequence[str]) -> None:
    """Parquet files in folders named by the values of `keys`, as `folder/north/2020/part-0.parquet`."""

    def write(schema: Any, tables: Iterable[Any]) -> None:
        _check_columns(keys, schema)
        if len(keys) == len(schema):
            raise UserErrorException("partition_by() was given every column; at least one must stay in the files.")
        fields = [pa.field(field.name, pa.string()) if field.name in keys else field for field in schema]
        text = pa.schema(fields)
        shutil.rmtree(folder, ignore_errors=True)  # of a try with other types
        by = arrow_dataset.DirectoryPartitioning(pa.schema([text.field(key) for key in keys]), segment_encoding="none")
        batches = (batch for each in tables for batch in _as_folders(each.cast(text), keys).to_batches())
        arrow_dataset.write_dataset(batches, folder, schema=text, format="parquet", partitioning=by, max_open_files=256)

    table.run(write)


def _as_folders(table: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        for value in pc.unique(table[key]).to_pylist():
            if not value or "/" in value or value in (".", ".."):
                raise DatasetExecutionError(f"Column '{key}' holds {value!r}, which cannot name a folder.")
    return table


def _after(step: Mapping[str, Any], schema: Any) -> Any:
    op = step["op"]
    if op == "keep":
        _check_columns(step["columns"], schema)
        return pa.schema([schema.field(name) for name in step["columns"]])
    if op == "drop":  # one that is not there is gone already
        return pa.schema([field for field in schema if field.name not in step["columns"]])
    if op == "filter":
        _check_columns(sorted(columns_of(step["condition"])), schema)
    return schema


def _check_columns(names: Sequence[str], schema: Any) -> None:
    for name in names:
        if name not in schema.names:
            raise DatasetExecutionError(f"There is no column '{name}'. Columns: {', '.join(schema.names)}.")


def _applied(step: Mapping[str, Any], tables: Iterator[Any], schema: Any) -> Iterator[Any]:
    op = step["op"]
    if op in ("keep", "drop"):
        return (table.select([name for name in schema.names if name in table.column_names]) for table in tables)
    if op == "filter":
        return (table.filter(_mask(table, step["condition"])) for table in tables)
    if op == "skip":
        return _without_first(tables, step["count"])
    if op == "take":
        return _first(tables, step["count"])
    if op == "sample":
        return _chosen(tables, step["probability"], step["seed"], True)
    if op == "split":
        return _chosen(tables, step["percentage"], step["seed"], step["part"] == 0)
    raise UserErrorException(f"A dataset step {op!r} is not known to this release of Lapis.")


def _without_first(tables: Iterator[Any], count: int) -> Iterator[Any]:
    for table in tables:
        gone = min(count, table.num_rows)
        count -= gone
        yield table.slice(gone)


def _first(tables: Iterator[Any], count: int) -> Iterator[Any]:
    if count == 0:
        return
    for table in tables:
        yield table.slice(0, count)
        count -= table.num_rows
        if count <= 0:
            return


def _chosen(tables: Iterator[Any], part: float, seed: int, mine: bool) -> Iterator[Any]:
    """Each row by a chance of its own, drawn in order: the same rows again for the same seed."""
    chance = random.Random(seed).random
    for table in tables:
        yield table.filter(pa.array([(chance() < part) == mine for _ in range(table.num_rows)], pa.bool_()))


def _mask(table: Any, condition: Sequence[Any]) -> Any:
    """True or false for each row, never missing."""
    op = condition[0]
    if op == "and":
        return pc.and_(_mask(table, condition[1]), _mask(table, condition[2]))
    if op == "or":
        return pc.or_(_mask(table, condition[1]), _mask(table, condition[2]))
    if op == "not":
        return pc.invert(_mask(table, condition[1]))
    column = table[condition[1]]
    if op == "null":
        return pc.is_null(column)
    if op == "ne":
        return pc.invert(_mask(table, ["eq", *condition[1:]]))
    other = table[condition[2]["column"]] if "column" in condition[2] else _literal(condition[2], column.type)
    if other is None:
        return pc.is_null(column) if op == "eq" else pa.chunked_array([pa.array([False] * len(column), pa.bool_())])
    try:
        compare = _starts_with if op == "starts_with" else _COMPARE[op]
        return pc.fill_null(compare(column, other), False)
    except (pa.ArrowException, TypeError):
        raise DatasetExecutionError(
            f"Column '{condition[1]}' is {column.type} and cannot be compared with {_named(condition[2])}."
        ) from None


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": pc.equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}


def _starts_with(column: Any, text: Any) -> Any:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise TypeError
    return pc.starts_with(column, text.as_py())


def _literal(operand: Mapping[str, Any], column_type: Any) -> Any:
    """What a column is compared with; text is a time where the column holds times."""
    if "datetime" in operand:
        return pa.scalar(datetime.fromisoformat(operand["datetime"]), pa.timestamp("us"))
    value = operand["value"]
    if isinstance(value, str) and pa.types.is_timestamp(column_type):
        try:
            return pa.scalar(datetime.fromisoformat(value), pa.timestamp("us"))
        except ValueError:
            return pa.scalar(value)  # and the comparison says what is wrong
    return None if value is None else pa.scalar(value)


def _named(operand: Mapping[str, Any]) -> str:
    return (
        f"column '{operand['column']}'" if "column" in operand else repr(operand.get("value", operand.get("datetime")))
    )


def _pushable(condition: Sequence[Any], schema: Any, hands_off: set[str]) -> Any:
    """The condition, or a weaker one, for the reader of Parquet files, which may skip parts of a file by it."""
    op = condition[0]
    if op in ("and", "or"):
        left, right = (_pushable(part, schema, hands_off) for part in condition[1:])
        if left is not None and right is not None:
            return left & right if op == "and" else left | right
        return None if op == "or" else (right if left is None else left)
    if op not in _COMPARE or "column" in condition[2] or condition[1] in hands_off or condition[1] not in schema.names:
        return None
    kind = schema.field(condition[1]).type
    value = _literal(condition[2], kind)
    if value is None or not _alike(kind, value.type):
        return None
    return _COMPARE[op](pc.field(condition[1]), value)


def _alike(one: Any, other: Any) -> bool:
    numbers = [pa.types.is_integer(each) or pa.types.is_floating(each) for each in (one, other)]
    if all(numbers) or one == other:
        return True
    return bool(pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz is None)
