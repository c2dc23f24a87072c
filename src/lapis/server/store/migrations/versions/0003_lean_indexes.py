"""Fewer and partial indexes: a short run wrote more index pages than anything else."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("runs", sa.Column("ended", sa.Integer, nullable=False, server_default="0"))
    op.execute("UPDATE runs SET ended = 1 WHERE state IN ('Completed', 'Failed', 'Canceled')")
    op.execute("UPDATE runs SET root_id = NULL WHERE root_id = id")
    for index in ("runs_by_parent", "runs_by_root", "runs_by_state", "runs_by_minded"):
        op.drop_index(index, "runs")
    for column in ("parent_id", "root_id", "minded"):
        name = f"runs_by_{column.removesuffix('_id')}"
        op.create_index(name, "runs", [column], sqlite_where=sa.text(f"{column} IS NOT NULL"))
    op.create_index("runs_not_ended", "runs", ["ended"], sqlite_where=sa.text("ended = 0"))
    for by in ("last", "least", "greatest"):
        op.drop_index(f"metric_series_by_{by}", "metric_series")
    for by in ("least", "greatest"):
        op.create_index(f"metric_series_by_{by}", "metric_series", ["name", by, "experiment_pk"])
