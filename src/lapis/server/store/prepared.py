"""A statement that is put into words once, for the few that every run and every logged point goes through.

SQLAlchemy's own way from a statement to the driver costs more than SQLite needs to run it: docs/decisions/0017.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Select
from sqlalchemy.sql.dml import UpdateBase


class Prepared:
    """Values go in by name; rows come out whole, with their columns as attributes."""

    def __init__(self, statement: Select[Any] | UpdateBase, given: Iterable[str] | None = None) -> None:
        """`given` are the columns that an insert or an update has values for, if not all."""
        self._statement = statement
        self._given = None if given is None else list(given)
        self._row: Any = namedtuple("Row", [str(name) for name in statement.exported_columns.keys()])  # type: ignore[misc]
        self._words: str | None = None

    def all(self, connection: Connection, values: Mapping[str, Any]) -> list[Any]:
        return list(self.each(connection, values))

    def each(self, connection: Connection, values: Mapping[str, Any]) -> Iterator[Any]:
        """One row after the other, for those that need not be in memory together."""
        cursor: Any = connection.connection.cursor()
        cursor.execute(self._words or self._put(connection), values)
        return map(self._row._make, cursor)

    def tuples(self, connection: Connection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        cursor = connection.connection.cursor()
        cursor.execute(self._words or self._put(connection), values)
        return list(cursor.fetchall())

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """The first row, or None."""
        return next(self.each(connection, values), None)

    def run(self, connection: Connection, many: list[dict[str, Any]]) -> None:
        """Once for each of `many`; nothing comes back."""
        connection.connection.cursor().executemany(self._words or self._put(connection), many)

    def _put(self, connection: Connection) -> str:
        self._words = str(self._statement.compile(dialect=connection.dialect, column_keys=self._given))
        return self._words
