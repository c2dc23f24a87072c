"""Where uv is, and the variables that it is run with: the indexes that the user has told uv or pip about."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Mapping

from lapis.machine.pip_settings import variables_for_uv

# Variables that say something about the interpreter that asks; the environment that is built is another one.
_OF_THE_ASKER = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_PROJECT")
_SECRETS = ("LAPIS_TOKEN", "AZUREML_RUN_TOKEN")  # the build of a package runs the code of strangers


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
    """Its cache: on the file system of what is built, so that environments share its files by hard links."""
    return os.environ.get("UV_CACHE_DIR") or os.path.join(home, "cache", "uv")


def environment_for(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if name not in (*_OF_THE_ASKER, *_SECRETS)}
    ours = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    # As pip does: of all indexes the best version. uv would take the first index that knows the name at all, and
    # definitions that were written for pip name extra indexes that hold old versions of everything.
    defaults = {"UV_INDEX_STRATEGY": "unsafe-best-match", **variables_for_uv(environ)}
    return {**defaults, **kept, **ours}
