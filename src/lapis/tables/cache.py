"""Files that tables were written to, kept for whoever wants the same rows again; what was used longest ago goes first.

Each table is a folder. The process that was given one holds a lock on it for as long as it lives, and a registered one
has a note beside it: neither is cleared away.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Callable, Iterator

DEFAULT_LIMIT = 50 << 30  # bytes that the cache may hold
_PART, _KEPT = ".part-", ".kept"
_held: dict[str, int] = {}  # folders of which this process holds the lock, each by its descriptor


def table_cache() -> TableCache:
    from lapis.domain import settings

    return TableCache(os.path.join(settings.home(), "cache", "tables"))


class TableCache:
    def __init__(self, folder: str, limit: int = DEFAULT_LIMIT) -> None:
        self._folder, self._limit = folder, limit

    def written(self, key: str, write: Callable[[str], None]) -> str:
        """The folder of that key; if it is not there, `write(folder)` fills it, and it is there whole or not at all."""
        import tempfile

        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        final = os.path.join(self._folder, key)
        with self._alone():
            if _hold(final):
                return final
            part = tempfile.mkdtemp(prefix=_PART, dir=self._folder)
            _hold(part)
        try:
            write(part)
            with self._alone():
                if not _hold(final):  # nobody was quicker
                    os.rename(part, final)
                    _hold(final)
                self._clear()
        finally:
            shutil.rmtree(part, ignore_errors=True)
            os.close(_held.pop(part))
        return final

    def keep(self, path: str) -> None:
        """Never clear away the table that lies at `path`, if one of ours does."""
        if os.path.dirname(path) == self._folder and os.path.isdir(path):
            with open(path + _KEPT, "w"):
                pass

    def _clear(self) -> None:
        """Remove what was used longest ago until the cache fits its limit, and what a killed process left half done."""
        found = []
        for entry in os.scandir(self._folder):
            if entry.is_dir():
                half = entry.name.startswith(_PART)
                size = sum(each.stat().st_size for each in os.scandir(entry.path))
                found.append((0.0 if half else entry.stat().st_mtime, size, entry.path))
        total = sum(size for _, size, _ in found)
        for used, size, path in sorted(found):
            if used and total <= self._limit:
                return
            if not os.path.exists(path + _KEPT) and _unheld(path):
                shutil.rmtree(path, ignore_errors=True)
                total -= size

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One process and thread at a time looks which folders there are, and removes some."""
        import fcntl

        with open(os.path.join(self._folder, ".lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _hold(path: str) -> bool:
    """Whether the folder is there; then it is in use from now on."""
    import fcntl

    if not os.path.isdir(path):
        return False
    os.utime(path)
    if path not in _held:
        _held[path] = os.open(path, os.O_RDONLY)
        fcntl.flock(_held[path], fcntl.LOCK_SH)
    return True


def _unheld(path: str) -> bool:
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
