"""Keeps workspaces and their experiments."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from lapis.errors import Conflict, NotFound
from lapis.server.store.database import Database
from lapis.server.store.runs import remove_runs
from lapis.server.store.tables import assets, experiments, holdings, runs, workspaces


class WorkspaceStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: set[str] = set()  # ids that were found: nobody else takes a workspace away

    def has(self, workspace_id: str) -> bool:
        """Asked with every request."""
        if workspace_id not in self._known and self.find(id=workspace_id):
            self._known.add(workspace_id)
        return workspace_id in self._known

    def add(self, workspace: dict[str, Any]) -> None:
        row = {key: workspace[key] for key in ("id", "subscription_id", "resource_group", "name")}
        try:
            with self._database.write() as connection:
                connection.execute(insert(workspaces).values(**row, body=json.dumps(workspace)))
        except IntegrityError:
            raise Conflict(
                f"A workspace named '{workspace['name']}' exists already in resource group "
                f"'{workspace['resource_group']}'. Pass exist_ok=True to get it."
            ) from None

    def find(self, **where: str | None) -> list[dict[str, Any]]:
        query = select(workspaces.c.body).order_by(workspaces.c.pk)
        for key, value in where.items():
            if value is not None:
                query = query.where(workspaces.c[key] == value)
        with self._database.read() as connection:
            return [json.loads(row.body) for row in connection.execute(query)]

    def replace(self, workspace: dict[str, Any]) -> None:
        with self._database.write() as connection:
            connection.execute(
                update(workspaces).where(workspaces.c.id == workspace["id"]).values(body=json.dumps(workspace))
            )

    def remove(self, workspace_id: str) -> None:
        with self._database.write() as connection:
            remove_runs(connection, runs.c.workspace_id == workspace_id)
            connection.execute(delete(assets).where(assets.c.workspace_id == workspace_id))
            connection.execute(delete(experiments).where(experiments.c.workspace_id == workspace_id))
            connection.execute(delete(holdings).where(holdings.c.workspace_id == workspace_id))
            connection.execute(delete(workspaces).where(workspaces.c.id == workspace_id))
        self._known.discard(workspace_id)

    def add_experiment(self, workspace_id: str, experiment: dict[str, Any]) -> dict[str, Any]:
        """Add it, or give the one of that name."""
        with self._database.write() as connection:
            found = connection.execute(_experiment(workspace_id, experiment["name"])).first()
            if found is None:
                connection.execute(
                    insert(experiments).values(
                        id=experiment["id"],
                        workspace_id=workspace_id,
                        name=experiment["name"],
                        runs=0,
                        body=json.dumps(experiment),
                    )
                )
                return experiment
        return _to_experiment(found)

    def experiments(self, workspace_id: str, name: str | None = None) -> list[dict[str, Any]]:
        query = select(experiments).where(experiments.c.workspace_id == workspace_id).order_by(experiments.c.pk)
        if name is not None:
            query = query.where(experiments.c.name == name)
        with self._database.read() as connection:
            return [_to_experiment(row) for row in connection.execute(query)]

    def newest_experiments(self, workspace_id: str, most: int) -> list[str]:
        mine = (experiments.c.workspace_id == workspace_id, experiments.c.archived_at.is_(None))
        query = select(experiments.c.name).where(*mine).order_by(experiments.c.pk.desc()).limit(most)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def replace_experiment(self, workspace_id: str, experiment: dict[str, Any]) -> None:
        mine = (experiments.c.workspace_id == workspace_id, experiments.c.id == experiment["id"])
        try:
            with self._database.write() as connection:
                row = connection.execute(select(experiments).where(*mine)).first()
                if row is None:
                    raise NotFound(f"No experiment with id {experiment['id']}.")
                connection.execute(
                    update(experiments)
                    .where(*mine)
                    .values(
                        name=experiment["name"],
                        archived_at=experiment.get("archived_at"),
                        body=json.dumps(experiment),
                    )
                )
                if row.name != experiment["name"]:
                    _rename_runs(connection, row.pk, experiment["name"])
        except IntegrityError:
            raise Conflict(f"An experiment named '{experiment['name']}' exists already.") from None

    def remove_experiment(self, workspace_id: str, experiment_id: str) -> None:
        """Remove an experiment that holds no runs."""
        with self._database.write() as connection:
            row = connection.execute(
                select(experiments).where(experiments.c.workspace_id == workspace_id, experiments.c.id == experiment_id)
            ).first()
            if row is None:
                raise NotFound(f"No experiment with id '{experiment_id}'. Experiment.list(workspace) shows them.")
            if connection.execute(select(runs.c.pk).where(runs.c.experiment_pk == row.pk).limit(1)).first():
                raise Conflict(
                    f"Experiment '{row.name}' holds runs, and an experiment can be deleted only when it is empty. "
                    "Delete its runs first, or archive it."
                )
            connection.execute(delete(experiments).where(experiments.c.pk == row.pk))


def _rename_runs(connection: Connection, experiment_pk: int, name: str) -> None:
    """Runs say the name of their experiment themselves."""
    rows = connection.execute(select(runs.c.pk, runs.c.body).where(runs.c.experiment_pk == experiment_pk)).all()
    renamed = [{"which": row.pk, "body": json.dumps(dict(json.loads(row.body), experiment=name))} for row in rows]
    if renamed:
        connection.execute(update(runs).where(runs.c.pk == bindparam("which")), renamed)


def _experiment(workspace_id: str, name: str) -> Any:
    return select(experiments).where(experiments.c.workspace_id == workspace_id, experiments.c.name == name)


def _to_experiment(row: Any) -> dict[str, Any]:
    return dict(json.loads(row.body), name=row.name, archived_at=row.archived_at, runs=row.runs)
