"""What was found that nobody needs, by kind: how many, how large, and how much of it went."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any


@dataclass
class Collected:
    what: str
    count: int = 0
    bytes: int = 0
    freed: int = 0

    def take(self, path: str, before: float, dry_run: bool, alone: threading.Lock | None = None) -> bool:
        """Remove a file or folder that was not touched since `before`; whether it was one. `alone` is held meanwhile:
        nobody finds it there in between."""
        with alone or nullcontext():
            try:
                if os.lstat(path).st_mtime >= before:
                    return False
                size = size_of(path)
                if not dry_run:
                    _remove(path)
            except FileNotFoundError:
                return False
        self.add(size, dry_run)
        return True

    def add(self, size: int, dry_run: bool, count: int = 1) -> None:
        self.count += count
        self.bytes += size
        self.freed += 0 if dry_run else size

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "count": self.count, "bytes": self.bytes, "freed": self.freed}


def size_of(path: str) -> int:
    """Bytes on the disk, of a folder with all below it."""
    if not os.path.isdir(path) or os.path.islink(path):
        return os.lstat(path).st_blocks * 512
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)
