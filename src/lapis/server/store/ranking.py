"""Ranks the values of a run's metrics among those of others, once it has ended. Until then they change all the time."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import metric_series, workspaces


def rank(connection: Connection, workspace_id: str, run_pk: int, standing: int) -> None:
    """Also of a run that is archived, or logs though it has ended. What is not ranked is found too, but slower."""
    _RANK.run(connection, [{"run": run_pk, "w": workspace_id, "s": standing}])


_RANK = Prepared(
    update(metric_series)
    .where(metric_series.c.run_pk == bindparam("run"))
    .values(
        standing=bindparam("s"),
        workspace_pk=select(workspaces.c.pk).where(workspaces.c.id == bindparam("w")).scalar_subquery(),
    )
)
