"""A home that stays from one session to the next: gigabytes of TensorFlow are installed once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import Home


@contextmanager
def kept_home(name: str = "lapis-models") -> Iterator[Home]:
    """Its server and what runs on it end; its files stay. One test at a time has it, whatever process it runs in."""
    home = Home(Path(tempfile.gettempdir(), f"{name}-{os.getuid()}"))
    home.path.mkdir(exist_ok=True)
    with open(f"{home.path}.lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        try:
            yield home
        finally:
            home.end(keep_files=True)
