"""The first schema: workspaces, experiments, runs, files, metrics, snapshots."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "workspaces",
        sa.Column("pk", KEY, primary_key=True),
        sa.Column("id", sa.String(64), nullable=False, unique=True),
        sa.Column("subscription_id", sa.String(255), nullable=False),
        sa.Column("resource_group", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("subscription_id", "resource_group", "name"),
    )
    op.create_table(
        "experiments",
        sa.Column("pk", KEY, primary_key=True),
        sa.Column("id", sa.String(64), nullable=False, unique=True),
        sa.Column("workspace_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("archived_at", sa.Float),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("workspace_id", "name"),
    )
    op.create_table(
        "runs",
        sa.Column("pk", KEY, primary_key=True),
        sa.Column("workspace_id", sa.String(64), nullable=False),
        sa.Column("id", sa.String(256), nullable=False),
        sa.Column("experiment_pk", KEY, sa.ForeignKey("experiments.pk"), nullable=False),
        sa.Column("parent_id", sa.String(256)),
        sa.Column("root_id", sa.String(256)),
        sa.Column("type", sa.String(64)),
        sa.Column("target", sa.String(255)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("minded", sa.String(8)),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("archived_at", sa.Float),
        sa.Column("last_heard", sa.Float),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("workspace_id", "id"),
    )
    op.create_index("runs_by_experiment", "runs", ["experiment_pk", "pk"])
    op.create_index("runs_by_parent", "runs", ["parent_id"])
    op.create_index("runs_by_root", "runs", ["root_id"])
    op.create_index("runs_by_state", "runs", ["state"])
    op.create_index("runs_by_minded", "runs", ["minded"])
    op.create_table(
        "run_labels",
        sa.Column("run_pk", KEY, sa.ForeignKey("runs.pk"), primary_key=True),
        sa.Column("kind", sa.String(1), primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("value", sa.Text),
    )
    op.create_index("run_labels_by_key", "run_labels", ["kind", "key", "value"])
    op.create_table(
        "run_files",
        sa.Column("run_pk", KEY, sa.ForeignKey("runs.pk"), primary_key=True),
        sa.Column("name", sa.String(1024), primary_key=True),
        sa.Column("hash", sa.String(64)),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("alias_of", sa.String(1024)),
    )
    op.create_table(
        "metric_series",
        sa.Column("pk", KEY, primary_key=True),
        sa.Column("run_pk", KEY, sa.ForeignKey("runs.pk"), nullable=False),
        sa.Column("experiment_pk", KEY, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("points", sa.Integer, nullable=False),
        sa.Column("last", sa.Float),
        sa.Column("least", sa.Float),
        sa.Column("greatest", sa.Float),
        sa.UniqueConstraint("run_pk", "name"),
    )
    for by in ("last", "least", "greatest"):
        op.create_index(f"metric_series_by_{by}", "metric_series", ["experiment_pk", "name", by])
    op.create_table(
        "metric_points",
        sa.Column("series_pk", KEY, sa.ForeignKey("metric_series.pk"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("step", sa.BigInteger),
        sa.Column("number", sa.Float),
        sa.Column("json", sa.Text),
        sa.Column("kind", sa.String(16)),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "journals",
        sa.Column("run_pk", KEY, sa.ForeignKey("runs.pk"), primary_key=True),
        sa.Column("stream", sa.String(128), primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "snapshots",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("manifest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("files", sa.Integer, nullable=False),
    )
