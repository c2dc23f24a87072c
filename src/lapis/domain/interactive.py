"""Where the process of an interactive run keeps what it has not sent yet. Both sides work it out; nobody is told."""

from __future__ import annotations

import os
from typing import NamedTuple


class Left(NamedTuple):
    journal: str
    spool: str  # a folder of files


def left_by(home: str, workspace_id: str, run_id: str, stream: str = "") -> Left:
    """The workspace is a part of it: runs of two workspaces may have one id. `stream` is that of a guest's journal."""
    base = os.path.join(home, "interactive", workspace_id, f"{run_id}.{stream}" if stream else run_id)
    return Left(base + ".jsonl", base + ".files")


def left_by_earlier_release(home: str, run_id: str) -> Left:
    base = os.path.join(home, "interactive", run_id)
    return Left(base + ".jsonl", base + ".files")
