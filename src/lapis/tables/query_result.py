"""Runs a query in the database behind a datastore and gives its rows in pieces, by a driver of the user's environment.

The server keeps its place in the result, so that one larger than memory streams. Sessions are read-only and in UTC. An
error says which datastore it was, in the database's own words and never with the password.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from lapis.domain.database import KINDS, MYSQL, POSTGRES, host_of, port_of, shown
from lapis.errors import DatasetExecutionError, NotThereYet, UserErrorException
from lapis.tables.types import STRING

BYTES = "bytes"
REACH_SECONDS = 5
_TABLES_SHOWN = 20


class Column(NamedTuple):
    name: str
    kind: str = STRING
    as_text: bool = False  # its values come as text, whatever they are
    many: bool = False  # its values are lists


class _Entry(NamedTuple):
    home: str  # of the class
    driver: str
    install: str


_DRIVERS = {
    POSTGRES: _Entry("lapis.tables.postgres_result:PostgresResult", "psycopg", "psycopg[binary]"),
    MYSQL: _Entry("lapis.tables.mysql_result:MySqlResult", "pymysql", "pymysql[rsa]"),
}


class QueryResult:
    """The rows of a query, from its beginning on. `seconds` is how long to wait for the next of them; 0 is for ever."""

    columns: list[Column]

    def __init__(self, driver: Any, access: Mapping[str, Any], query: str, seconds: float) -> None:
        self._driver, self._access, self._query, self._seconds = driver, access, query, seconds
        self._connection: Any = None
        self._reach()
        try:
            with self._explained(self._why_not_opened):
                self._connect()
            with self._explained(self._why_not_run):
                self.columns = self._begin()
            if not self.columns:
                raise DatasetExecutionError(f"A query that gives rows is needed; this one does not: {_short(query)}")
        except BaseException:
            self.close()
            raise

    def fetch(self, count: int) -> Sequence[Sequence[Any]]:
        """The next rows, at most so many; none when there are no more."""
        with self._explained(self._why_not_run):
            return self._next(count)

    def close(self) -> None:
        """What is left of the result stays where it is."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- what each database has its own way for

    def _connect(self) -> None:
        raise NotImplementedError

    def _begin(self) -> list[Column]:
        raise NotImplementedError

    def _next(self, count: int) -> Sequence[Sequence[Any]]:
        raise NotImplementedError

    def _words(self, error: Exception) -> str:
        """What the database says of an error."""
        raise NotImplementedError

    def _timed_out(self, error: Exception) -> bool:
        raise NotImplementedError

    def _tables_instead(self, error: Exception) -> list[str]:
        """The tables that there are, where the error is that one is not."""
        raise NotImplementedError

    # -- errors

    def _reach(self) -> None:
        """Nobody there is found out now: a driver may try for minutes."""
        import socket

        try:
            socket.create_connection((host_of(self._access), port_of(self._access)), REACH_SECONDS).close()
        except OSError as error:
            reason = error.strerror or str(error)
            raise DatasetExecutionError(
                f"{shown(self._access)} cannot be reached: nobody answers there ({reason}). Are server_name, endpoint "
                "and port_number right, and does the network lead there?"
            ) from None

    @contextmanager
    def _explained(self, why: Any) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            raise DatasetExecutionError(
                f"{shown(self._access)} sent text that is no {error.encoding}. Convert it in the query."
            ) from None
        except (self._driver.Error, OSError, RuntimeError) as error:
            message = why(error)
            for secret in self._access["credentials"].values():
                message = message.replace(secret, "***")
            raise DatasetExecutionError(message) from None

    def _why_not_opened(self, error: Exception) -> str:
        said = self._words(error)
        no_ssl = " enforce_ssl=False allows a connection that is not encrypted." if "SSL" in said else ""
        return (
            f"{shown(self._access)} cannot be opened: {said}. If the datastore is not what it should be, register it "
            f"again with overwrite=True.{no_ssl}"
        )

    def _why_not_run(self, error: Exception) -> str:
        if self._seconds and self._timed_out(error):
            return (
                f"{shown(self._access)} gave no more rows within query_timeout, {self._seconds:g} s, and the query was "
                f"stopped. Where it needs longer, give it a longer query_timeout. The query: {_short(self._query)}"
            )
        tables: list[str] = []
        with suppress(self._driver.Error):
            tables = self._tables_instead(error)
        known = ", ".join(tables[:_TABLES_SHOWN]) + (", ..." if tables[_TABLES_SHOWN:] else "")
        instead = f" Tables there: {known}." if tables else ""
        said = self._words(error)
        return f"{shown(self._access)} cannot run the query: {said}.{instead} The query: {_short(self._query)}"


def open_query(access: Mapping[str, Any], query: str, seconds: float) -> QueryResult:
    """Start a query. `access` is a datastore's view with its credentials."""
    driver = driver_of(access)
    module, _, name = _DRIVERS[access["type"]].home.partition(":")
    made: QueryResult = getattr(import_module(module), name)(driver, access, query, seconds)
    return made


def driver_of(store: Mapping[str, Any]) -> Any:
    """The module that speaks to a datastore of that name and type, or an error that says what to install where."""
    if store["type"] not in KINDS:  # a name that another datastore has taken since
        raise UserErrorException(f"Datastore '{store['name']}' is no database, so no query can be put to it.")
    entry = _DRIVERS.get(store["type"])
    if entry is None:
        raise NotThereYet(
            f"Datastore '{store['name']}' is a SQL Server database, which this release of Lapis cannot query.",
            "Read it with a driver of your own, such as pymssql, into a data frame: "
            "Dataset.Tabular.register_pandas_dataframe() keeps it as a table.",
        )
    try:
        return import_module(entry.driver)
    except ImportError as missing:
        raise UserErrorException(
            f"Datastore '{store['name']}' is a database, and to query it the environment of {sys.executable} needs the "
            f"package {entry.driver} ({missing}). Install it: pip install '{entry.install}'"
        ) from None


def _short(query: str) -> str:
    text = " ".join(query.split())
    return text if len(text) <= 200 else text[:200] + " ..."
