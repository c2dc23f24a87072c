"""How a module of ours is started as a process of its own, with our packages and nothing of whoever starts it."""

from __future__ import annotations

import os
import sys

from lapis.machine import own_sources


def own_python(module: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment that start a module of ours with our packages, which the agent itself does without."""
    environment = {key: value for key, value in os.environ.items() if key not in ("LAPIS_TOKEN", "PYTHONHOME")}
    environment["PYTHONPATH"] = own_sources.folder()
    # -P: a file of ours or the user's in the working folder must not stand in for a module
    return [sys.executable, "-P", "-W", "ignore", "-m", module], environment
