"""Keeps which snapshots there are; their files are blobs, and so is the list of them."""

from __future__ import annotations

import json

from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.tree import Tree
from lapis.errors import NotFound
from lapis.server.store.blobs import BlobFolder
from lapis.server.store.database import Database
from lapis.server.store.tables import snapshots


class SnapshotStore:
    def __init__(self, database: Database, blobs: BlobFolder) -> None:
        self._database = database
        self._blobs = blobs

    def has(self, snapshot_id: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(select(snapshots.c.id).where(snapshots.c.id == snapshot_id)).first() is not None

    def add(self, tree: Tree, at: float) -> None:
        """Keep a tree whose blobs are all here. The same tree again is silent."""
        manifest, _ = self._blobs.put_bytes(json.dumps(tree.to_json(), separators=(",", ":")).encode())
        with self._database.write() as connection:
            connection.execute(
                upsert(snapshots)
                .values(id=tree.id, manifest=manifest, created_at=at, size=tree.total_size, files=len(tree.entries))
                .on_conflict_do_nothing()
            )

    def get(self, snapshot_id: str) -> Tree:
        with self._database.read() as connection:
            query = select(snapshots.c.manifest).where(snapshots.c.id == snapshot_id)
            manifest = connection.execute(query).scalar()
        if manifest is None:
            raise NotFound(f"No snapshot with id '{snapshot_id}' is stored here.")
        return Tree.from_json(json.loads(self._blobs.read_whole(manifest)))
