"""Keeps which snapshots there are; their files are blobs, and so is the list of them."""

from __future__ import annotations

import json
from functools import lru_cache

from sqlalchemy import and_, bindparam, select
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.tree import Tree
from lapis.errors import NotFound
from lapis.server.store.blobs import BlobFolder
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
        with self._database.read() as connection:
            return _HELD.first(connection, {"w": workspace_id, "k": SNAPSHOT, "s": snapshot_id}) is not None

    def add(self, workspace_id: str, tree: Tree, at: float) -> None:
        """Keep a tree whose blobs are all here, for a workspace. The same tree again is silent."""
        manifest, _ = self._blobs.put_bytes(json.dumps(tree.to_json(), separators=(",", ":")).encode())
        with self._database.write() as connection:
            connection.execute(
                upsert(snapshots)
                .values(id=tree.id, manifest=manifest, created_at=at, size=tree.total_size, files=len(tree.entries))
                .on_conflict_do_nothing()
            )
            write_holdings(connection, [(workspace_id, SNAPSHOT, tree.id)])

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


_HELD = Prepared(
    select(snapshots.c.id)
    .join(holdings, and_(holdings.c.kind == bindparam("k"), holdings.c.digest == snapshots.c.id))
    .where(holdings.c.workspace_id == bindparam("w"), snapshots.c.id == bindparam("s"))
)
