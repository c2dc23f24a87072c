"""Waiting for something that can be seen, with a deadline: never for time to pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen], seconds: float = 20.0) -> Seen:
    """What `look()` gives once that is true."""
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, f"not seen within {seconds:g} s; the last look gave {seen!r}"
        time.sleep(0.02)


def until_written(path: Path, seconds: float = 20.0) -> str:
    """The text of a file that a script writes whole, with an end of line, when it has come so far."""
    return until(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text(), seconds).strip()
