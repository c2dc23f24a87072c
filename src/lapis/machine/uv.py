"""Where uv is, and the variables that it is run with: the indexes that the user has told uv or pip about."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Mapping

from lapis.machine import cloning
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


def environment_for(environ: Mapping[str, str], cache: str) -> dict[str, str]:
    """The variables for uv with that cache. What it installs are copies, unless the user has said otherwise.

    They share blocks where the file system can. With hard links, what somebody appends to a module would be in the
    cache, and so in every environment to come; told to clone, uv makes links where it cannot.
    """
    copies = {"UV_LINK_MODE": "clone" if cloning.is_possible(cache) else "copy"}
    ours = {"UV_CACHE_DIR": cache, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    return {**copies, **variables_for_uv(environ), **harmless(environ), **ours}
