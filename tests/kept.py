"""A home that stays from one session to the next: gigabytes of TensorFlow are installed once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lapis.testing import Home
from tests.turns import turn


@contextmanager
def kept_home(name: str = "lapis-models") -> Iterator[Home]:
    """Its server and what runs on it end; its files stay. One test at a time has it, whatever process it runs in."""
    home = Home(Path(tempfile.gettempdir(), f"{name}-{os.getuid()}"))
    home.path.mkdir(exist_ok=True)
    with turn(f"{home.path}.lock"):
        try:
            yield home
        finally:
            home.end(keep_files=True)
