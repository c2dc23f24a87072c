"""Which blobs were hashed a short while ago, and have not been touched since: they need not be hashed again.

Whoever writes to a file changes its times, which nobody can set back. What a disk spoils by itself does not: so it
holds for a while only.
"""

from __future__ import annotations

import os
import time

_HOLDS = 3600.0  # seconds
_MOST = 10_000


class RecentlyChecked:
    def __init__(self) -> None:
        self._seen: dict[str, tuple[tuple[int, ...], float]] = {}

    def note(self, digest: str, file: int) -> None:
        """What `file` holds has that hash, as somebody has just found."""
        if len(self._seen) >= _MOST:
            self._seen = {}
        self._seen[digest] = _stamp(file), time.monotonic()

    def has(self, digest: str, file: int) -> bool:
        stamp, at = self._seen.get(digest, ((), 0.0))
        return stamp == _stamp(file) and time.monotonic() - at < _HOLDS


def _stamp(file: int) -> tuple[int, ...]:
    found = os.fstat(file)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
