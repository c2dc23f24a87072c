"""The rows of a query to PostgreSQL, through a cursor of the server. It needs psycopg 3."""

from __future__ import annotations

import math
from typing import Any, Sequence

from lapis.domain.database import host_of, port_of
from lapis.tables.query_result import BYTES, REACH_SECONDS, Column, QueryResult
from lapis.tables.types import BOOL, DATETIME, FLOAT, LONG, STRING

_KINDS = {
    "bool": BOOL,
    "int2": LONG,
    "int4": LONG,
    "int8": LONG,
    "oid": LONG,
    "float4": FLOAT,
    "float8": FLOAT,
    "bytea": BYTES,
}
# PostgreSQL has values of these that Python has not (infinity, years BC), and Arrow reads their text faster.
_KINDS_OF_TEXT = {"numeric": FLOAT, "date": DATETIME, "timestamp": DATETIME, "timestamptz": DATETIME}
_SETTINGS = {"TimeZone": "UTC", "DateStyle": "ISO", "bytea_output": "hex"}
_NO_TABLE, _CANCELED = "42P01", "57014"
_TABLES = """
    SELECT CASE table_schema WHEN 'public' THEN table_name ELSE table_schema || '.' || table_name END
    FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1 LIMIT 21
"""


class PostgresResult(QueryResult):
    _cursor: Any = None

    def _connect(self) -> None:
        options = self._access["options"]
        self._connection = self._driver.connect(
            host=host_of(self._access),
            port=port_of(self._access),
            dbname=options["database_name"],
            user=options["user_id"],
            password=self._access["credentials"]["user_password"],
            sslmode="require" if options.get("enforce_ssl", "True") == "True" else "prefer",
            connect_timeout=REACH_SECONDS,
            client_encoding="utf8",
            application_name="lapis",
            prepare_threshold=None,  # a pool between us and the server may not know prepared statements
            keepalives_idle=10,  # a server that went away without a word is found out within half a minute
            keepalives_interval=5,
            keepalives_count=4,
        )

    def _begin(self) -> list[Column]:
        self._connection.read_only = True
        self._load_text_as_it_is()
        settings = dict(_SETTINGS, statement_timeout=str(math.ceil(self._seconds * 1000)))
        for name, value in settings.items():  # of this transaction: a pool gives the connection to others
            self._connection.execute("SELECT set_config(%s, %s, true)", [name, value])
        self._cursor = self._connection.cursor("lapis")
        self._cursor.execute(self._query)
        return [self._column(each.name, each.type_code) for each in self._cursor.description]

    def _load_text_as_it_is(self) -> None:
        adapters = self._connection.adapters
        for info in adapters.types:
            if info.name not in _KINDS:
                adapters.register_loader(info.oid, self._driver.types.string.TextLoader)

    def _column(self, name: str, oid: int) -> Column:
        info = self._connection.adapters.types.get(oid)
        if info is None:  # an enumeration, a type of an extension
            return Column(name)
        many = oid == info.array_oid
        if info.name in _KINDS_OF_TEXT and not (many and _KINDS_OF_TEXT[info.name] == DATETIME):
            return Column(name, _KINDS_OF_TEXT[info.name], True, many)
        return Column(name, _KINDS.get(info.name, STRING), False, many)

    def _next(self, count: int) -> Sequence[Sequence[Any]]:
        return self._cursor.fetchmany(count)  # type: ignore[no-any-return]

    def close(self) -> None:
        super().close()
        if self._cursor is not None:
            self._cursor.close()  # after the connection: nothing is said to the server any more

    def _words(self, error: Exception) -> str:
        diagnosis: Any = getattr(error, "diag", None)
        if diagnosis is not None and diagnosis.message_primary:
            return ". ".join(filter(None, [diagnosis.message_primary, diagnosis.message_hint])).rstrip(".")
        return str(error).strip().rpartition("failed: ")[2].replace("FATAL:  ", "")  # the address stands before it

    def _timed_out(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) == _CANCELED

    def _tables_instead(self, error: Exception) -> list[str]:
        if getattr(error, "sqlstate", None) != _NO_TABLE:
            return []
        self._connection.rollback()
        return [row[0] for row in self._connection.execute(_TABLES).fetchall()]
