"""Opens the database, brings it up to date, and hands out read and write transactions."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.exc import DatabaseError

from lapis.errors import AzureMLException, Conflict, StorageFull
from lapis.machine import on_disk

_DAMAGE = ("malformed", "is not a database", "database corruption", "unsupported file format")  # SQLite's words
_LARGEST_LOG = 64 << 20  # bytes
_LOOK_EVERY = 64  # commits
_READERS_ARE_DONE = 100  # milliseconds
_PATIENCE = 30_000  # milliseconds
HEAD = "0008"  # the newest migration; a test holds it equal to Alembic's own idea


class Database:
    """One SQLite file in WAL mode: many readers, one writer at a time, a commit that survives kill -9.

    A commit does not wait for the disk. What is to survive a power cut is told to `settle`, once for many commits.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._writing = threading.Lock()
        self._writer: Connection | None = None
        self._writes: int | None = None  # the thread that does
        self._afterwards: list[Callable[[], object]] = []  # once what it writes is committed
        self._commits = self._settled = 0
        self._settling = threading.Lock()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._engine = create_engine(
            f"sqlite:///{path}",
            pool_size=41,
            max_overflow=0,
            paramstyle="named",  # so that prepared statements take their values by name with any driver
            connect_args={"check_same_thread": False},
        )
        event.listen(self._engine, "connect", _configure)
        self._upgrade()
        self._forget_statistics()
        on_disk.settle(os.path.dirname(path))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Within a write of the same thread: a part of it, which sees what it wrote."""
        if self._writes == threading.get_ident():
            assert self._writer is not None
            yield self._writer
            return
        with _clear_errors(self.path), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of the block, or leaves nothing behind.

        Within another one of the same thread it is a part of that: several stores can write in one commit.
        """
        if self._writes == threading.get_ident():
            assert self._writer is not None
            yield self._writer
            return
        with _clear_errors(self.path), self._writing:
            if self._writer is None:
                self._writer = self._engine.connect()  # one for all writes: only one can write at a time
            connection = self._writer
            driver = connection.connection
            try:
                self._writes = threading.get_ident()
                driver.cursor().execute("BEGIN IMMEDIATE")
                afterwards = self._afterwards = list[Callable[[], object]]()
                yield connection
                driver.commit()
                self._commits += 1
                if self._commits % _LOOK_EVERY == 0:
                    self._bound_log(driver)
            finally:
                self._writes = None
                driver.rollback()  # nothing, if it was committed
                connection.rollback()
        _do_all(afterwards)

    def _bound_log(self, driver: Any) -> None:
        """SQLite begins its log anew only when nobody reads just then, and among many readers that may never be."""
        if os.path.getsize(f"{self.path}-wal") > _LARGEST_LOG:
            cursor = driver.cursor()
            cursor.execute(f"PRAGMA busy_timeout={_READERS_ARE_DONE}")
            try:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # or nothing, if one of them takes longer
            finally:
                cursor.execute(f"PRAGMA busy_timeout={_PATIENCE}")

    def after_commit(self, work: Callable[[], object]) -> None:
        """Do `work` once the transaction of this thread is committed, at once if there is none, and never if it fails.

        For whatever others must not see before it is true, and for what is done again if it was not done.
        """
        if self._writes == threading.get_ident():
            self._afterwards.append(work)
        else:
            work()

    def settle(self) -> None:
        """Wait until everything that was committed is on the disk. Whoever comes meanwhile waits for the same.

        Commits are in the log, or in the database: that SQLite brings to the disk itself before it begins the log anew.
        """
        wanted = self._commits
        with self._settling:
            if self._settled < wanted:
                reached = self._commits
                on_disk.settle(f"{self.path}-wal")
                self._settled = reached

    @property
    def busy(self) -> bool:
        """Whether a write would have to wait for another one."""
        return self._writing.locked()

    def close(self) -> None:
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
        self._engine.dispose()

    def _upgrade(self) -> None:
        found = self._version()
        if found == HEAD:
            return
        if found is not None and found > HEAD:
            raise Conflict(
                f"The database {self.path} was written by a newer release of Lapis (schema {found}; this release "
                f"knows {HEAD}). Install that release, or point LAPIS_HOME somewhere else."
            )
        if found is None:
            self._make()
            return
        from alembic import command  # late: only an older database needs it
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        with self.write() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def _make(self) -> None:
        """A new one, as all migrations would make it: a start does not wait for them, nor for Alembic."""
        with self.write() as connection:
            for statement in _statements((Path(__file__).parent / "schema.sql").read_text()):
                connection.exec_driver_sql(statement)

    def _forget_statistics(self) -> None:
        """Somebody may have said ANALYZE when there were few runs: SQLite would go through all of the many of today.

        Without statistics it takes every table for a large one, and seeks.
        """
        with self.read() as connection:
            there = connection.execute(text("SELECT name FROM sqlite_master WHERE name LIKE 'sqlite_stat%'")).all()
        if there:
            with self.write() as connection:
                for row in there:
                    connection.execute(text(f"DROP TABLE {row.name}"))

    def _version(self) -> str | None:
        with self.read() as connection:
            there = connection.execute(text("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'")).first()
            row = connection.execute(text("SELECT version_num FROM alembic_version")).first() if there else None
            return str(row[0]) if row else None


def _statements(script: str) -> Iterator[str]:
    """One by one: `executescript` would commit what went before, and a half-made database could not be gone on with."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _do_all(works: list[Callable[[], object]]) -> None:
    """Each of them, though one before it failed."""
    for number, work in enumerate(works):
        try:
            work()
        except BaseException:
            _do_all(works[number + 1 :])
            raise


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        f"busy_timeout={_PATIENCE}",
        "foreign_keys=ON",
        "cache_size=-20000",
        "temp_store=MEMORY",
        "wal_autocheckpoint=8000",  # 32 MB: a page that many small writes touch is copied back once
    ):
        connection.execute(f"PRAGMA {pragma}")


@contextmanager
def _clear_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (DatabaseError, sqlite3.DatabaseError) as error:  # SQLAlchemy's, or from a prepared statement
        said = str(getattr(error, "orig", error))
        if "disk is full" in said or "disk I/O error" in said:
            raise StorageFull(
                f"The disk that holds {path} is full ({said}). Free some space; what was not acknowledged is kept by "
                "its sender and comes again."
            ) from error
        if any(each in said for each in _DAMAGE):
            raise AzureMLException(
                f"The database {path} is damaged ({said}). `lapis doctor` says how; `lapis stop` and `lapis doctor "
                "--fix` save what can be read, or `lapis restore` brings a backup back."
            ) from error
        if "readonly" in said or "unable to open" in said:
            raise AzureMLException(
                f"The database {path} cannot be written ({said}). Point LAPIS_HOME at a folder that can."
            ) from error
        raise
