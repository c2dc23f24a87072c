"""Requests: what changing ones were answered."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "requests",
        sa.Column("pk", KEY, primary_key=True),
        sa.Column("actor", sa.String(400), nullable=False),
        sa.Column("identity", sa.String(64), nullable=False),
        sa.Column("mark", sa.String(64), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.UniqueConstraint("actor", "identity"),
    )
