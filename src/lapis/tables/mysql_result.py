"""The rows of a query to MySQL or MariaDB, read off the connection as they come. It needs PyMySQL."""

from __future__ import annotations

from typing import Any, Sequence

from lapis.domain.database import host_of, port_of
from lapis.tables.query_result import BYTES, REACH_SECONDS, Column, QueryResult
from lapis.tables.types import DATETIME, FLOAT, LONG, STRING

_KINDS = {
    "TINY": LONG,
    "SHORT": LONG,
    "INT24": LONG,
    "LONG": LONG,
    "LONGLONG": LONG,
    "YEAR": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": FLOAT,
    "BIT": BYTES,
    "JSON": STRING,
}
_KINDS_OF_TEXT = {
    "DECIMAL": FLOAT,
    "NEWDECIMAL": FLOAT,
    "DATE": DATETIME,
    "DATETIME": DATETIME,
    "TIMESTAMP": DATETIME,
    "TIME": STRING,
}
_BINARY = 63  # the character set of what is no text
_NO_TABLE, _LOST = 1146, 2013
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1 LIMIT 21"


class MySqlResult(QueryResult):
    _cursor: Any = None

    def _connect(self) -> None:
        options = self._access["options"]
        names = vars(self._driver.constants.FIELD_TYPE)
        self._types = {number: name for name, number in names.items() if name.isupper() and name != "CHAR"}
        as_text = {number for number, name in self._types.items() if name in _KINDS_OF_TEXT}
        self._connection = self._driver.connect(
            host=host_of(self._access),
            port=port_of(self._access),
            database=options["database_name"],
            user=options["user_id"],
            password=self._access["credentials"]["user_password"],
            charset="utf8mb4",
            conv={key: each for key, each in self._driver.converters.conversions.items() if key not in as_text},
            connect_timeout=REACH_SECONDS,
            read_timeout=self._seconds or None,
        )

    def _begin(self) -> list[Column]:
        with self._connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
        self._cursor = self._connection.cursor(self._driver.cursors.SSCursor)
        self._cursor.execute(self._query)
        return [self._column(field) for field in self._fields()]

    def _fields(self) -> Sequence[Any]:
        """What is known of each column; the description that the driver gives does not tell text from bytes."""
        return getattr(self._cursor._result, "fields", [])

    def _column(self, field: Any) -> Column:
        kind = self._types.get(field.type_code, "")
        if kind in _KINDS_OF_TEXT:
            return Column(field.name, _KINDS_OF_TEXT[kind], True)
        return Column(field.name, _KINDS.get(kind, BYTES if field.charsetnr == _BINARY else STRING))

    def _next(self, count: int) -> Sequence[Sequence[Any]]:
        return self._cursor.fetchmany(count)  # type: ignore[no-any-return]

    def _words(self, error: Exception) -> str:
        return str(error.args[-1]).rstrip(".")

    def _timed_out(self, error: Exception) -> bool:
        return error.args[0] == _LOST and "timed out" in str(error.args[-1])

    def _tables_instead(self, error: Exception) -> list[str]:
        if error.args[0] != _NO_TABLE:
            return []
        with self._connection.cursor() as cursor:
            cursor.execute(_TABLES)
            return [row[0] for row in cursor.fetchall()]

    def close(self) -> None:
        if self._cursor is not None and self._cursor._result is not None:
            self._cursor._result.unbuffered_active = False  # else the driver reads all that is left before it closes
        super().close()
