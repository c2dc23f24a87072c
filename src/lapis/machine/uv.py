"""Where uv is, and the variables that it is run with: the indexes that the user has told uv or pip about."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Mapping

from lapis.machine.pip_settings import variables_for_uv
from lapis.machine.surroundings import harmless


def found() -> str | None:
    """The uv of this interpreter's environment, else of the uv package, else of the PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    if os.access(beside, os.X_OK):
        return beside
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        return shutil.which("uv")


def cache_folder(home: str) -> str:
    """Its cache: on the file system of what is built, so that copies can share its blocks."""
    return os.environ.get("UV_CACHE_DIR") or os.path.join(home, "cache", "uv")


def environment_for(environ: Mapping[str, str]) -> dict[str, str]:
    ours = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    return {**variables_for_uv(environ), **harmless(environ), **ours}
