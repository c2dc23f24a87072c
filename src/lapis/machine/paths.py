"""Where a path lies, with all links followed."""

from __future__ import annotations

import os


def is_within(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies below it. A relative one is taken from the folder that this process is in."""
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))
