"""Keeps assets: values registered under a name, in numbered versions, and which runs used them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.errors import NotFound
from lapis.server.store.database import Database
from lapis.server.store.tables import assets, run_assets, runs

DATASTORE, DATASET, ENVIRONMENT, COMPUTE, MODEL = "datastore", "dataset", "environment", "compute", "model"
SERVICE, IMAGE, PROFILE, PACKAGE, SECRET = "service", "image", "profile", "package", "secret"
SAVED = "saved-dataset"  # a definition without a name: what a run read or wrote that nobody registered


@dataclass(frozen=True)
class Asset:
    id: str
    workspace_id: str
    kind: str
    name: str
    created_at: float
    version: int = 1
    revision: int = 0
    body: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "version": self.version, "created_at": self.created_at, **self.body}


class Use(NamedTuple):
    """That a run read or wrote an asset."""

    asset_id: str
    role: str  # input or output
    name: str  # as the run calls it
    asset: Asset | None  # None: it was removed since


class AssetStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, asset: Asset, which: Callable[[Asset | None], Asset | None]) -> Asset:
        """Keep the next version. `which` sees the newest one there is and returns it to leave things as they are,
        None for the next version, or raises."""
        with self._database.write() as connection:
            newest = self._newest(connection, asset.workspace_id, asset.kind, asset.name)
            kept = which(newest)
            if kept is not None:
                return kept
            fresh = replace(asset, version=newest.version + 1 if newest is not None else 1)
            connection.execute(
                insert(assets).values(
                    id=fresh.id,
                    workspace_id=fresh.workspace_id,
                    kind=fresh.kind,
                    name=fresh.name,
                    version=fresh.version,
                    created_at=fresh.created_at,
                    revision=0,
                    body=json.dumps(fresh.body),
                )
            )
            return fresh

    def _newest(self, connection: Connection, workspace_id: str, kind: str, name: str) -> Asset | None:
        query = select(assets).where(
            assets.c.workspace_id == workspace_id, assets.c.kind == kind, assets.c.name == name
        )
        row = connection.execute(query.order_by(assets.c.version.desc()).limit(1)).first()
        return _to_asset(row) if row is not None else None

    def find(
        self, workspace_id: str, kind: str, name: str | None = None, version: int | None = None, newest: bool = False
    ) -> list[Asset]:
        """By name, then by version, the newest first; with `newest` only that one of each name."""
        query = select(assets).where(assets.c.workspace_id == workspace_id, assets.c.kind == kind)
        if name is not None:
            query = query.where(assets.c.name == name)
        if version is not None:
            query = query.where(assets.c.version == version)
        if newest:
            last = select(assets.c.name, func.max(assets.c.version).label("version")).where(
                assets.c.workspace_id == workspace_id, assets.c.kind == kind
            )
            latest = last.group_by(assets.c.name).subquery()
            query = query.join(latest, (latest.c.name == assets.c.name) & (latest.c.version == assets.c.version))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(assets.c.name, assets.c.version.desc())).all()
        return [_to_asset(row) for row in rows]

    def of_kind(self, kind: str) -> list[Asset]:
        """In every workspace."""
        with self._database.read() as connection:
            return [_to_asset(row) for row in connection.execute(select(assets).where(assets.c.kind == kind))]

    def get(self, workspace_id: str, asset_id: str) -> Asset:
        query = select(assets).where(assets.c.workspace_id == workspace_id, assets.c.id == asset_id)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise NotFound(f"Nothing with id '{asset_id}' is registered in this workspace.")
        return _to_asset(row)

    def change(self, workspace_id: str, asset_id: str, how: Callable[[Asset], Asset]) -> Asset:
        with self._database.write() as connection:
            query = select(assets).where(assets.c.workspace_id == workspace_id, assets.c.id == asset_id)
            row = connection.execute(query).first()
            if row is None:
                raise NotFound(f"Nothing with id '{asset_id}' is registered in this workspace.")
            after = how(_to_asset(row))
            connection.execute(
                update(assets)
                .where(assets.c.pk == row.pk)
                .values(body=json.dumps(after.body), revision=row.revision + 1)
            )
            return after

    def remove(self, workspace_id: str, kind: str, name: str) -> int:
        """Every version of that name; how many there were."""
        with self._database.write() as connection:
            return connection.execute(
                delete(assets).where(
                    assets.c.workspace_id == workspace_id, assets.c.kind == kind, assets.c.name == name
                )
            ).rowcount

    def note_use(self, workspace_id: str, run_id: str, uses: Sequence[tuple[str, ...]]) -> None:
        """A run used assets, as (asset id, role, name in the run). The same again is silent."""
        if not uses:
            return
        with self._database.write() as connection:
            run_pk = connection.execute(
                select(runs.c.pk).where(runs.c.workspace_id == workspace_id, runs.c.id == run_id)
            ).scalar_one()
            for asset_id, role, name in uses:
                connection.execute(
                    upsert(run_assets)
                    .values(run_pk=run_pk, asset_id=asset_id, role=role, name=name)
                    .on_conflict_do_nothing()
                )

    def used_by(self, workspace_id: str, asset_id: str) -> list[dict[str, Any]]:
        """The runs that read or wrote an asset."""
        query = (
            select(runs.c.id, run_assets.c.role, run_assets.c.name)
            .join(runs, runs.c.pk == run_assets.c.run_pk)
            .where(runs.c.workspace_id == workspace_id, run_assets.c.asset_id == asset_id)
            .order_by(runs.c.pk)
        )
        with self._database.read() as connection:
            return [{"run_id": row.id, "role": row.role, "name": row.name} for row in connection.execute(query)]

    def uses_of(self, workspace_id: str, run_id: str) -> list[Use]:
        """The assets that a run read or wrote."""
        query = (
            select(run_assets.c.asset_id, run_assets.c.role, run_assets.c.name.label("called"), assets)
            .join(runs, runs.c.pk == run_assets.c.run_pk)
            .outerjoin(assets, and_(assets.c.id == run_assets.c.asset_id, assets.c.workspace_id == workspace_id))
            .where(runs.c.workspace_id == workspace_id, runs.c.id == run_id)
            .order_by(run_assets.c.role, run_assets.c.name)
        )
        with self._database.read() as connection:
            return [
                Use(row.asset_id, row.role, row.called, _to_asset(row) if row.id is not None else None)
                for row in connection.execute(query)
            ]


def _to_asset(row: Any) -> Asset:
    return Asset(
        row.id, row.workspace_id, row.kind, row.name, row.created_at, row.version, row.revision, json.loads(row.body)
    )
