"""Ranks the values of ended runs' metrics among those of others, many at a time.

While a run goes on its values change, and one that has ended writes twenty pages of indexes for five metrics: of a
hundred runs together most of these are the same pages. What is not ranked yet is looked at one by one (run_lists.py),
so every list is right whenever that is.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import metric_series, runs, workspaces

AT_ONCE = 100  # runs that have ended


def rank_ended(connection: Connection) -> None:
    """All series of runs that have ended, and have not been ranked."""
    mine = runs.c.pk == metric_series.c.run_pk
    waiting = (
        select(metric_series.c.pk)
        .join(runs, mine)
        .where(metric_series.c.standing.is_(None), runs.c.ended == 1)
        .correlate(None)
    )
    home = select(workspaces.c.pk).join(runs, runs.c.workspace_id == workspaces.c.id).where(mine)
    connection.execute(
        update(metric_series)
        .where(metric_series.c.pk.in_(waiting))
        .values(
            standing=select(runs.c.standing).where(mine).scalar_subquery(),
            workspace_pk=home.correlate(metric_series).scalar_subquery(),
        )
    )


def move(connection: Connection, run_pk: int, standing: int) -> None:
    """Of a run that is archived, or comes back: what was ranked of it."""
    _MOVE.run(connection, [{"run": run_pk, "s": standing}])


_MOVE = Prepared(
    update(metric_series)
    .where(metric_series.c.run_pk == bindparam("run"), metric_series.c.standing.is_not(None))
    .values(standing=bindparam("s"))
)
