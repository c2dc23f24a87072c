"""Saves what can be read of a damaged database into a new one; the damaged one is put aside, and stays."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from lapis.errors import UserErrorException
from lapis.upkeep import contents

_AT_ONCE = 256  # rows
_ONE_BY_ONE, _FARTHEST = 1 << 16, 1 << 40  # how far to look behind what cannot be read: row by row, then in strides


@dataclass
class Salvaged:
    aside: str = ""  # where the damaged database is now
    rows: dict[str, int] = field(default_factory=dict)  # saved, by table
    gaps: dict[str, int] = field(default_factory=dict)  # stretches that could not be read, by table
    orphans: int = 0  # rows that were saved and belonged to one that was not


def salvage(home: str) -> Salvaged:
    """Replace the database of a home, which no server serves meanwhile, by what can be read of it."""
    path = os.path.join(home, contents.DATABASE)
    fresh = f"{path}.{os.getpid()}.part"
    done = Salvaged(f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    if os.path.exists(fresh):
        os.remove(fresh)
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(_open(path)) as damaged, closing(sqlite3.connect(fresh, isolation_level=None)) as saved:
            _copy(damaged, saved, done)
            saved.execute("PRAGMA synchronous=FULL")
            done.orphans = _drop_orphans(saved)
            (verdict,) = saved.execute("PRAGMA integrity_check").fetchone()
            if verdict != "ok":
                raise UserErrorException(f"What was read does not make a whole database: {verdict}. {_RESTORE}")
    except BaseException:
        os.remove(fresh)
        raise
    for suffix in ("-wal", "-shm", ""):
        if os.path.exists(path + suffix):
            os.replace(path + suffix, done.aside + suffix)
    os.replace(fresh, path)
    return done


_RESTORE = "Restore a backup: `lapis restore` into an empty LAPIS_HOME."


def _open(path: str) -> sqlite3.Connection:
    """With what the log holds that was not yet copied into the file, where that can be read."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.execute("PRAGMA query_only=ON")
    return connection


def _copy(damaged: sqlite3.Connection, saved: sqlite3.Connection, done: Salvaged) -> None:
    try:
        schema = damaged.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    except sqlite3.DatabaseError as error:
        raise UserErrorException(f"Not even the list of tables can be read ({error}). {_RESTORE}") from error
    tables = [row for row in schema if row["type"] == "table" and not row["name"].startswith("sqlite_")]
    if not tables:
        raise UserErrorException(f"The database has no tables. {_RESTORE}")
    saved.execute("BEGIN")
    for table in tables:
        saved.execute(table["sql"])
        _copy_table(damaged, saved, table["name"], "WITHOUT ROWID" in table["sql"].upper(), done)
    for row in schema:
        if row["type"] != "table":
            try:
                saved.execute(row["sql"])
            except sqlite3.IntegrityError:  # rows that cannot both be: the damage made one of another
                raise UserErrorException(f"What was read of the table of {row['name']} is torn. {_RESTORE}") from None
    saved.execute("COMMIT")


def _copy_table(
    damaged: sqlite3.Connection, saved: sqlite3.Connection, table: str, by_key: bool, done: Salvaged
) -> None:
    done.rows[table], done.gaps[table] = 0, 0
    readable = _by_key(damaged, table, done) if by_key else _by_rowid(damaged, table, done)
    for row in readable:
        marks = ", ".join("?" * len(row))
        try:
            saved.execute(f'INSERT OR IGNORE INTO "{table}" VALUES ({marks})', row)
            done.rows[table] += 1
        except sqlite3.IntegrityError:  # a torn row
            done.gaps[table] += 1


def _by_rowid(damaged: sqlite3.Connection, table: str, done: Salvaged) -> Iterator[tuple[Any, ...]]:
    """In the order of rows; where a page cannot be read, the first row behind it is looked for in leaps."""
    after, leap, at_once = -1, 0, _AT_ONCE
    last = _last(damaged, f'SELECT max(rowid) FROM "{table}"')
    while leap < _FARTHEST and (last is None or after + leap < last):
        try:
            rows = damaged.execute(
                f'SELECT rowid, * FROM "{table}" WHERE rowid > ? ORDER BY rowid LIMIT ?', (after + leap, at_once)
            ).fetchall()
        except sqlite3.DatabaseError:
            if at_once > 1:  # somewhere among these: one by one
                at_once = 1
                continue
            done.gaps[table] += leap == 0
            leap = leap + 1 if leap < _ONE_BY_ONE else leap * 2
            continue
        if not rows:
            return
        for row in rows:
            yield tuple(row)[1:]
        after, leap, at_once = rows[-1][0], 0, _AT_ONCE


def _by_key(damaged: sqlite3.Connection, table: str, done: Salvaged) -> Iterator[tuple[Any, ...]]:
    """A table without rowids: by its first key, each value of it by itself, whose rows lie together."""
    info = damaged.execute(f'PRAGMA table_info("{table}")').fetchall()
    first, second = (column["name"] for column in sorted((c for c in info if c["pk"]), key=lambda c: c["pk"])[:2])
    for key in _parents(damaged, table, first):
        after: Any = -(1 << 62)
        for order, stop in (("", False), (" DESC", True)):
            try:
                for row in damaged.execute(
                    f'SELECT * FROM "{table}" WHERE "{first}" = ? AND "{second}" > ? ORDER BY "{second}"{order}',
                    (key, after),
                ):
                    yield tuple(row)
                    after = row[second] if not stop else after
                break
            except sqlite3.DatabaseError:  # from the other end, as far as that goes
                done.gaps[table] += not stop


def _parents(damaged: sqlite3.Connection, table: str, column: str) -> Iterator[Any]:
    """The keys that rows of a table can have: those of the table that it refers to."""
    for reference in damaged.execute(f'PRAGMA foreign_key_list("{table}")').fetchall():
        if reference["from"] == column:
            ignored = Salvaged(gaps={reference["table"]: 0})
            position = [c["name"] for c in damaged.execute(f'PRAGMA table_info("{reference["table"]}")')].index(
                reference["to"]
            )
            yield from (row[position] for row in _by_rowid(damaged, reference["table"], ignored))


def _last(damaged: sqlite3.Connection, query: str) -> int | None:
    try:
        found = damaged.execute(query).fetchone()[0]
    except sqlite3.DatabaseError:
        return None
    return -1 if found is None else int(found)


def _drop_orphans(saved: sqlite3.Connection) -> int:
    """Rows whose run or series was lost: nobody could ever see them."""
    dropped = 0
    while broken := saved.execute("PRAGMA foreign_key_check").fetchall():
        for table in {row[0] for row in broken}:
            for reference in saved.execute(f'PRAGMA foreign_key_list("{table}")').fetchall():
                _, _, parent, column, key, *_ = reference
                dropped += saved.execute(
                    f'DELETE FROM "{table}" WHERE "{column}" IS NOT NULL AND "{column}" NOT IN'
                    f' (SELECT "{key or "pk"}" FROM "{parent}")'
                ).rowcount
    return dropped
