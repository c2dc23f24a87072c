"""Which workspace has which snapshots, locks and blobs: stored once by their hash, and shared by nobody unasked."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "holdings",
        sa.Column("workspace_id", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(8), primary_key=True),
        sa.Column("digest", sa.String(64), primary_key=True),
        sqlite_with_rowid=False,
    )
    for table, kind, path in (
        ("runs", "snapshot", "$.snapshot_id"),
        ("runs", "lock", "$.job.environment.lock"),
        ("assets", "snapshot", "$.content.snapshot_id"),  # of images and packages
    ):
        op.execute(
            f"INSERT OR IGNORE INTO holdings SELECT DISTINCT workspace_id, '{kind}', json_extract(body, '{path}') "
            f"FROM {table} WHERE json_extract(body, '{path}') IS NOT NULL"
        )
