"""Assets: what is registered under a name, and which runs read or wrote it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "assets",
        sa.Column("pk", KEY, primary_key=True),
        sa.Column("id", sa.String(64), nullable=False, unique=True),
        sa.Column("workspace_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("workspace_id", "kind", "name", "version"),
    )
    op.create_table(
        "run_assets",
        sa.Column("run_pk", KEY, sa.ForeignKey("runs.pk"), primary_key=True),
        sa.Column("asset_id", sa.String(64), primary_key=True),
        sa.Column("role", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(255), primary_key=True),
    )
    op.create_index("run_assets_by_asset", "run_assets", ["asset_id"])
