"""The stores of one server, side by side, as everything above needs them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lapis.server.store.assets import AssetStore
from lapis.server.store.blobs import BlobFolder
from lapis.server.store.database import Database
from lapis.server.store.files import FileStore
from lapis.server.store.holdings import HoldingStore
from lapis.server.store.metrics import MetricStore
from lapis.server.store.requests import RequestStore
from lapis.server.store.runs import RunStore
from lapis.server.store.services import ServiceStore
from lapis.server.store.snapshots import SnapshotStore
from lapis.server.store.workspaces import WorkspaceStore


@dataclass(frozen=True)
class Stores:
    database: Database
    workspaces: WorkspaceStore
    runs: RunStore
    metrics: MetricStore
    files: FileStore
    snapshots: SnapshotStore
    holdings: HoldingStore
    assets: AssetStore
    services: ServiceStore
    blobs: BlobFolder
    requests: RequestStore

    def settle(self) -> None:
        """Wait until all that was stored is on the disk: blobs before what names them."""
        self.blobs.settle()
        self.database.settle()


def open_stores(home: str) -> Stores:
    database = Database(os.path.join(home, "lapis.db"))
    blobs = BlobFolder(os.path.join(home, "blobs"))
    assets = AssetStore(database)
    return Stores(
        database=database,
        workspaces=WorkspaceStore(database),
        runs=RunStore(database),
        metrics=MetricStore(database),
        files=FileStore(database, blobs, os.path.join(home, "live")),
        snapshots=SnapshotStore(database, blobs),
        holdings=HoldingStore(database),
        assets=assets,
        services=ServiceStore(assets),
        blobs=blobs,
        requests=RequestStore(database),
    )
