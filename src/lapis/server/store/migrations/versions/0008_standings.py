"""Every list of runs is read in order: by standing, by mark, or by the rank of a metric."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from lapis.domain import standing
from lapis.domain.run import RunRecord, RunState
from lapis.server.store import run_marks

revision = "0008"
down_revision = "0007"

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("runs", sa.Column("standing", sa.Integer, nullable=False, server_default="0"))
    op.execute(f"UPDATE runs SET standing = {standing.SQL}")
    for index in ("runs_by_experiment", "runs_by_workspace", "runs_by_state"):
        op.drop_index(index, "runs")
    op.create_index("runs_of_workspace", "runs", ["workspace_id", "standing"])
    op.create_index("runs_of_experiment", "runs", ["experiment_pk", "standing"])
    for by in ("least", "greatest"):
        op.drop_index(f"metric_series_by_{by}", "metric_series")
    op.add_column("metric_series", sa.Column("workspace_pk", _KEY))
    op.add_column("metric_series", sa.Column("standing", sa.Integer))
    op.execute(
        "UPDATE metric_series SET (standing, workspace_pk) = (SELECT runs.standing, workspaces.pk FROM runs"
        " LEFT JOIN workspaces ON workspaces.id = runs.workspace_id WHERE runs.pk = run_pk)"
        " WHERE run_pk IN (SELECT pk FROM runs WHERE ended = 1)"
    )
    for home in ("workspace", "experiment"):
        for value in ("least", "greatest"):
            columns = [f"{home}_pk", "name", "standing", value, "run_pk"]
            where = sa.text("standing IS NOT NULL")
            op.create_index(f"{value}_of_{home}", "metric_series", columns, sqlite_where=where)
    op.create_index("series_not_ranked", "metric_series", ["name"], sqlite_where=sa.text("standing IS NULL"))
    op.create_table(
        "run_marks",
        sa.Column("mark", sa.BigInteger, nullable=False),
        sa.Column("run_pk", _KEY, nullable=False),
        sa.PrimaryKeyConstraint("mark", "run_pk"),
        sqlite_with_rowid=False,
    )
    _mark_runs(op.get_bind())
    op.drop_table("run_labels")  # its rows are in the runs themselves


def _mark_runs(connection: sa.Connection) -> None:
    runs = sa.table("runs", *(sa.column(name) for name in _COLUMNS))
    marks = sa.table("run_marks", sa.column("mark"), sa.column("run_pk"))
    last = 0
    while rows := connection.execute(sa.select(runs).where(runs.c.pk > last).order_by(runs.c.pk).limit(1000)).all():
        found = [(row.pk, mark) for row in rows for mark in run_marks.of_run(_record(row), row.experiment_pk)]
        if found:
            connection.execute(sa.insert(marks), [{"run_pk": pk, "mark": mark} for pk, mark in found])
        last = rows[-1].pk


_COLUMNS = ("pk", "workspace_id", "id", "experiment_pk", "parent_id", "type", "target", "state", "archived_at", "body")


def _record(row: Any) -> RunRecord:
    """As much of a run as its marks are made of."""
    body = json.loads(row.body)
    return RunRecord(
        row.id, row.workspace_id, "", 0.0, type=row.type, parent_id=row.parent_id, target=row.target,
        state=RunState(row.state), tags=body.get("tags") or {}, properties=body.get("properties") or {},
        archived_at=row.archived_at,
    )  # fmt: skip
