"""Lists of a workspace's newest runs, and of those in one state, are read in order and not sorted."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_index("runs_by_workspace", "runs", ["workspace_id"])
    op.create_index("runs_by_state", "runs", ["workspace_id", "state"])


def downgrade() -> None:
    op.drop_index("runs_by_state", "runs")
    op.drop_index("runs_by_workspace", "runs")
