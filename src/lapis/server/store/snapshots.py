"""Keeps which snapshots there are; their files are blobs, and so is the list of them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.tree import Tree
from lapis.errors import NotFound
from lapis.server.store.blobs import FRESH, BlobFolder
from lapis.server.store.database import Database
from lapis.server.store.tables import snapshots


class SnapshotStore:
    def __init__(self, database: Database, blobs: BlobFolder) -> None:
        self._database = database
        self._blobs = blobs

    def ask_for(self, snapshot_id: str, at: float) -> bool:
        """Whether it is here, whole. Whoever is told so may name it for a day after: so long it is not collected."""
        with self._database.read() as connection:
            row = connection.execute(select(snapshots).where(snapshots.c.id == snapshot_id)).first()
        if row is None or row.created_at > at - FRESH / 2:
            return row is not None
        if self._blobs.missing([row.manifest]) or self._blobs.missing(entry.hash for entry in self.get(snapshot_id)):
            return False
        with self._database.write() as connection:
            mine = update(snapshots).where(snapshots.c.id == snapshot_id)
            return connection.execute(mine.values(created_at=at)).rowcount > 0

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
        with self._blobs.open(manifest) as file:
            return Tree.from_json(json.loads(file.read()))

    def collect(self, ids: Iterable[str], before: float) -> int:
        """Forget those of them that nobody asked for since `before`; how many."""
        with self._database.write() as connection:
            return sum(
                connection.execute(
                    delete(snapshots).where(snapshots.c.id == each, snapshots.c.created_at < before)
                ).rowcount
                for each in ids
            )
