"""Waits until what was written is on the disk, so that a power cut does not take it back."""

from __future__ import annotations

import os
from typing import Collection

_MANY = 64  # files: more of them at once are quicker written with everything else of their file system


def settle(path: str) -> None:
    """A file with all it holds, or a folder with the names in it. One that is gone needs nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def settle_all(files: Collection[str], root: str) -> None:
    """Files below `root` that have their names already: a file system that keeps a journal brings those along."""
    if len(files) > _MANY and _settle_file_system(root):
        return
    for path in files:
        settle(path)


def _settle_file_system(root: str) -> bool:
    import ctypes

    descriptor = os.open(root, os.O_RDONLY)
    try:
        return bool(ctypes.CDLL(None).syncfs(descriptor) == 0)
    except AttributeError:
        return False
    finally:
        os.close(descriptor)
