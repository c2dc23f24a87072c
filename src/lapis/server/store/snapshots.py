"""Keeps which snapshots there are; their files are blobs, and so is the list of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sqlalchemy import and_, bindparam, delete, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.tree import Tree
from lapis.errors import NotFound
from lapis.server.store.blobs import FRESH, BlobFolder
from lapis.server.store.database import Database
from lapis.server.store.holdings import SNAPSHOT, write_holdings
from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import holdings, snapshots


class SnapshotStore:
    def __init__(self, database: Database, blobs: BlobFolder) -> None:
        self._database = database
        self._blobs = blobs
        self.hashes = lru_cache(maxsize=16)(self._read_hashes)  # whoever reads one file reads the others next

    def has(self, workspace_id: str, snapshot_id: str) -> bool:
        """Whether it is one of that workspace."""
        return self._held(workspace_id, snapshot_id) is not None

    def ask_for(self, workspace_id: str, snapshot_id: str, at: float) -> bool:
        """Whether that workspace has it, whole. Who is told so may name it for a day: so long it is not collected."""
        row = self._held(workspace_id, snapshot_id)
        if row is None or row.created_at > at - FRESH / 2:
            return row is not None
        if self._blobs.missing([row.manifest]) or self._blobs.missing(entry.hash for entry in self.get(snapshot_id)):
            return False
        with self._database.write() as connection:
            mine = update(snapshots).where(snapshots.c.id == snapshot_id)
            return connection.execute(mine.values(created_at=at)).rowcount > 0

    def add(self, workspace_id: str, tree: Tree, at: float) -> None:
        """Keep a tree whose blobs are all here, for a workspace. The same tree again is silent."""
        manifest, _ = self._blobs.put_bytes(json.dumps(tree.to_json(), separators=(",", ":")).encode())
        with self._database.write() as connection:
            connection.execute(
                upsert(snapshots)
                .values(id=tree.id, manifest=manifest, created_at=at, size=tree.total_size, files=len(tree.entries))
                .on_conflict_do_update(index_elements=["id"], set_={"created_at": at})
            )
            write_holdings(connection, [(workspace_id, SNAPSHOT, tree.id)])

    def _held(self, workspace_id: str, snapshot_id: str) -> Any:
        with self._database.read() as connection:
            return _HELD.first(connection, {"w": workspace_id, "k": SNAPSHOT, "s": snapshot_id})

    def _read_hashes(self, snapshot_id: str) -> frozenset[str]:
        """Of its files."""
        return frozenset(entry.hash for entry in self.get(snapshot_id))

    def get(self, snapshot_id: str) -> Tree:
        with self._database.read() as connection:
            query = select(snapshots.c.manifest).where(snapshots.c.id == snapshot_id)
            manifest = connection.execute(query).scalar()
        if manifest is None:
            raise NotFound(f"No snapshot with id '{snapshot_id}' is stored here.")
        return Tree.from_json(json.loads(self._blobs.read_whole(manifest)))

    def collect(self, ids: Iterable[str], before: float) -> int:
        """Forget those of them that nobody asked for since `before`; how many."""
        with self._database.write() as connection:
            gone = 0
            for each in ids:
                stale = delete(snapshots).where(snapshots.c.id == each, snapshots.c.created_at < before)
                if connection.execute(stale).rowcount:
                    held = and_(holdings.c.kind == SNAPSHOT, holdings.c.digest == each)
                    connection.execute(delete(holdings).where(held))
                    gone += 1
            return gone


_HELD = Prepared(
    select(snapshots)
    .join(holdings, and_(holdings.c.kind == bindparam("k"), holdings.c.digest == snapshots.c.id))
    .where(holdings.c.workspace_id == bindparam("w"), snapshots.c.id == bindparam("s"))
)
