"""Keeps which workspace has what of the things that all workspaces share by their hash.

What is stored under its hash is stored once, whoever sent it; that a workspace may use it is a row here.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.server.store.database import Database
from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import holdings

SNAPSHOT, LOCK, BLOB = "snapshot", "lock", "blob"
_MOST_KNOWN = 100_000


class HoldingStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: set[tuple[str, str, str]] = set()  # rows that are there for good: asked for again and again

    def has(self, workspace_id: str, kind: str, digest: str) -> bool:
        row = (workspace_id, kind, digest)
        if row in self._known:
            return True
        with self._database.read() as connection:
            found = _ONE.first(connection, {"w": workspace_id, "k": kind, "d": digest}) is not None
        if found:
            self._learn([row])
        return found

    def add(self, workspace_id: str, kind: str, digests: Iterable[str]) -> None:
        new = [row for row in ((workspace_id, kind, digest) for digest in digests) if row not in self._known]
        if not new:
            return
        with self._database.write() as connection:
            write_holdings(connection, new)
        self._learn(new)

    def forget(self, workspace_id: str) -> None:
        """The workspace is gone, and its rows with it."""
        self._known = {row for row in self._known if row[0] != workspace_id}

    def _learn(self, rows: list[tuple[str, str, str]]) -> None:
        if len(self._known) > _MOST_KNOWN:
            self._known = set()
        self._known.update(rows)


def write_holdings(connection: Connection, rows: list[tuple[str, str, str]]) -> None:
    """As a part of a transaction."""
    _ADD.run(connection, [dict(zip(("workspace_id", "kind", "digest"), row, strict=True)) for row in rows])


_ONE = Prepared(
    select(holdings.c.digest).where(
        holdings.c.workspace_id == bindparam("w"),
        holdings.c.kind == bindparam("k"),
        holdings.c.digest == bindparam("d"),
    )
)
_ADD = Prepared(upsert(holdings).on_conflict_do_nothing(), ("workspace_id", "kind", "digest"))
