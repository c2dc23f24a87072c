"""Keeps environments and caches below their limit: a process of low priority, started after a build, not waited for.

python -m lapis.environments.tidy <root>
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from lapis.domain import settings
from lapis.environments.cache import prune


def tidy_later(root: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lapis.environments.tidy", root],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it outlives us
    )
    threading.Thread(target=process.wait, daemon=True).start()  # so that it leaves no zombie


if __name__ == "__main__":
    os.nice(19)
    prune(sys.argv[1], int(settings.load().environments_max_gb * 1e9))
