"""Reads the rows of a query to a database as a table, a piece at a time: each is as large as a block of a file."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Sequence

from lapis.errors import DatasetExecutionError
from lapis.tables.arrow import pa, pc
from lapis.tables.column_values import arrow_type, declared
from lapis.tables.files import TableFiles, distinct
from lapis.tables.query_result import BYTES, Column, QueryResult
from lapis.tables.types import DATETIME, STRING

_FIRST_ROWS, _MOST_ROWS = 100, 1 << 14
_PIECE = 8 << 20  # bytes


class Query:
    """Where the rows of a table come from, in place of its files."""

    constants: Mapping[str, Any] = {}

    def __init__(self, name: str, start: Callable[[], QueryResult]) -> None:
        self.name, self.start = name, start


class QueryRows(TableFiles):
    """The query is started when its columns are asked for, and goes on when its rows are: it runs once for both."""

    def __init__(self, queries: Sequence[Any], options: Mapping[str, Any], on_error: str) -> None:
        super().__init__(queries, options, on_error)
        self._query: Query = queries[0]
        self._started: QueryResult | None = None

    def schema(self) -> Any:
        self._start()
        return super().schema()

    def tables(self, columns: Sequence[str], wanted: Any, condition: Any) -> Iterator[Any]:
        result, rows = self._start()
        self._started = None
        try:
            while rows:
                table = self._as_they_come(rows)
                yield self._finished(self._converted(table.select(columns)), columns, self._files[0])
                rows = result.fetch(_next_count(table))
        finally:
            result.close()

    def close(self) -> None:
        if self._started is not None:
            self._started.close()
            self._started = None

    def _start(self) -> tuple[QueryResult, Sequence[Any]]:
        """The result and its first rows: only with them it is known that the query can be run."""
        if self._started is None:
            self._started = self._query.start()
            self.names = distinct([column.name for column in self._started.columns])
            self._columns = dict(zip(self.names, self._started.columns))
            self.types = {name: _type(column) for name, column in self._columns.items()}
            self._check_declared()
            self._first = self._started.fetch(_FIRST_ROWS)
        return self._started, self._first

    def _as_they_come(self, rows: Sequence[Sequence[Any]]) -> Any:
        arrays = []
        for name, values in zip(self.names, zip(*rows)):
            column = self._columns[name]
            try:
                arrays.append(pa.array(values, _type(column._replace(kind=STRING) if column.as_text else column)))
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                raise DatasetExecutionError(
                    f"Column '{name}' of {self._query.name} holds a value that is no {_type(column)}: {error}. Cast "
                    "it in the query, to text if nothing else holds it."
                ) from None
        return pa.table(arrays, names=self.names)

    def _converted(self, table: Any) -> Any:
        """What came as text, as what it is; what the user has declared to be another type is left to that."""
        for number, name in enumerate(table.column_names):
            column = self._columns[name]
            if column.as_text and self._declared.get(name, {"type": column.kind})["type"] == column.kind:
                table = table.set_column(number, name, self._parsed(table[number], name, column))
        return table

    def _parsed(self, text: Any, name: str, column: Column) -> Any:
        if column.many:
            return pc.cast(text, _type(column))
        if column.kind == DATETIME:
            text = pc.replace_substring(text, "+00", "")  # sessions are in UTC, and so are tables
        return declared(text, {"type": column.kind}, name, self._on_error)


def _type(column: Column) -> Any:
    one = pa.binary() if column.kind == BYTES else arrow_type(column.kind)
    return pa.list_(one) if column.many else one


def _next_count(table: Any) -> int:
    """So many rows of this size fit into a piece."""
    return max(1, min(_MOST_ROWS, _PIECE * int(table.num_rows) // max(1, int(table.nbytes))))
