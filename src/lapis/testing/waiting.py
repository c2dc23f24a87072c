"""Waiting for something that can be seen, with a deadline: never for time to pass."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Seen = TypeVar("Seen")


def until(look: Callable[[], Seen], otherwise: Callable[[], object] | None = None, *, seconds: float = 30.0) -> Seen:
    """What `look()` gives once that is true.

    If that takes longer than `seconds`, an AssertionError says what was looked for and what was seen last, and what
    `otherwise()` has to tell: a log, say.
    """
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            more = "" if otherwise is None else f"\n{otherwise()}"
            raise AssertionError(f"Not within {seconds:g} s: {_source(look)}. The last look gave {seen!r}.{more}")
        time.sleep(0.01)


def until_written(path: Path, *, seconds: float = 30.0) -> str:
    """The text of a file that a script writes whole, with an end of line, when it has come so far."""

    def written() -> str:
        text = path.read_text() if path.exists() else ""
        return text.strip() if text.endswith("\n") else ""

    return until(written, lambda: f"The file is {path}.", seconds=seconds)


def _source(look: Callable[[], object]) -> str:
    """The code of a test says better than anything else what it waits for."""
    try:
        return " ".join(inspect.getsource(look).split())
    except (OSError, TypeError):  # typed into an interpreter, or written in C
        return repr(look)
