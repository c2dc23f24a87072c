"""One test process at a time: for what all processes of a test session, and of sessions side by side, share."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(file: Path | str) -> Iterator[None]:
    """Wait until no other process has its turn with this file. The kernel ends the turn of one that dies."""
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
