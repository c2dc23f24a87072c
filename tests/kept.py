"""A home that stays from one session to the next: gigabytes of TensorFlow are installed once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import Home


@contextmanager
def kept_home() -> Iterator[Home]:
    """Its server and what runs on it end; its files stay."""
    home = Home(Path(tempfile.gettempdir(), f"lapis-models-{os.getuid()}"))
    home.path.mkdir(exist_ok=True)
    try:
        yield home
    finally:
        home.end(keep_files=True)
