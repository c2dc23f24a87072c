"""Objects of object stores, fetched once for all runs of a machine: whole or not at all, resumed when cut off.

An object is kept under the hash of where it lies and what it is (size, ETag), so a changed one is another one. Its lock
file notes the copy's length and time: one that a script changed through its link has others, and is fetched anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import IO

from lapis.domain.data import PIECE
from lapis.errors import NotFound, UserErrorException
from lapis.files import pieces, shared_files
from lapis.machine import cloning
from lapis.object_stores.stores import Object, ObjectStore

AT_ONCE = 4  # pieces of one object
DEFAULT_LIMIT = 50 << 30  # bytes that the cache may hold
_STALE = 24 * 3600.0  # a part that nobody went on with for so long
_TRIES = 3


class ObjectCache:
    def __init__(self, folder: str, limit: int = DEFAULT_LIMIT) -> None:
        self._folder = folder
        self._limit = limit

    def place(self, store: ObjectStore, wanted: Object) -> str:
        """Where a copy is kept once it is here whole."""
        return os.path.join(self._folder, _key(store, wanted))

    def has(self, store: ObjectStore, wanted: Object) -> bool:
        """Whether a whole copy is here, as it was downloaded."""
        try:
            with open(self.place(store, wanted) + ".lock") as note:
                return _intact(self.place(store, wanted), note)
        except FileNotFoundError:
            return False

    def bring(self, store: ObjectStore, wanted: Object, place: str, copy: bool, came: Callable[[int], None]) -> Object:
        """Put an object at `place`: a link to the kept copy, or with `copy` a file of its own. What it was then."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        for _ in range(_TRIES):
            final = self.place(store, wanted)
            with _locked(final) as note:  # whoever comes second finds it done, and nobody clears it away meanwhile
                if not _intact(final, note):
                    _forget(final)
                    whole = self._download(store, wanted, final, came)
                    now = store.info(wanted.key)
                    if now is None:
                        _forget(final + ".part")
                        raise NotFound(f"{wanted.key!r} of datastore '{store.name}' was removed while it was read.")
                    if not whole or now[:3] != wanted[:3]:  # what came may be a mixture of two
                        _forget(final + ".part")
                        wanted = now
                        continue
                    os.chmod(final + ".part", 0o444)
                    os.replace(final + ".part", final)
                    pieces.drop(final, wanted.size)
                    note.truncate(0)
                    note.write(_facts(final))
                kept = os.stat(final)
                os.utime(final, ns=(time.time_ns(), kept.st_mtime_ns))  # used now: the last to be cleared away
                _lay(final, place, copy)
                return wanted
        raise UserErrorException(
            f"{wanted.key!r} of datastore '{store.name}' changes faster than it can be read. Nothing was kept of it."
        )

    def clear(self) -> None:
        """Remove what was used longest ago until the cache fits its limit; never what somebody is about to use."""
        with contextlib.suppress(FileNotFoundError):
            found = []
            for entry in os.scandir(self._folder):
                if entry.name.endswith(".lock"):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    stale = entry.name.endswith(".part") and time.time() - status.st_mtime > _STALE
                    found.append((0.0 if stale else status.st_atime, status.st_size, status.st_nlink, entry.path))
            held = sum(size for _, size, _, _ in found)
            for used, size, links, path in sorted(found):
                if held <= self._limit and used > 0:
                    return
                if links == 1 and _remove_unheld(path):  # a second link is a run's: removing ours would free nothing
                    held -= size

    def _download(self, store: ObjectStore, wanted: Object, final: str, came: Callable[[int], None]) -> bool:
        """Whether it came whole. What is there already of this very object is kept, and the rest added at its end."""
        path = final + ".part"
        have = os.path.getsize(path) if os.path.exists(path) else 0
        with open(path, "ab" if have <= wanted.size else "wb") as file:
            done = file.tell()
            came(done)
            while done < wanted.size:
                end = min(done + PIECE * AT_ONCE, wanted.size)
                parts = _parts(store, wanted, final, [(at, min(at + PIECE, end)) for at in range(done, end, PIECE)])
                if sum(map(len, parts)) != end - done:
                    return False
                for part in parts:
                    file.write(part)
                    came(len(part))
                done = end
        return True


def _parts(store: ObjectStore, wanted: Object, final: str, spans: list[tuple[int, int]]) -> list[pieces.Chunk]:
    """Parts of an object: what somebody streamed comes from the cache, the others are fetched side by side."""
    kept = [pieces.find(final, begin, end - begin) for begin, end in spans]
    missing = [span for span, piece in zip(spans, kept, strict=True) if piece is None]
    fetched = iter(store.read(wanted.key, missing) if missing else [])
    lengths = [end - begin for begin, end in spans]
    return [
        next(fetched) if piece is None else piece.content(length) for piece, length in zip(kept, lengths, strict=True)
    ]


def _key(store: ObjectStore, wanted: Object) -> str:
    return hashlib.sha256(json.dumps([store.endpoint, store.bucket, *wanted[:3]]).encode()).hexdigest()


@contextlib.contextmanager
def _locked(final: str) -> Iterator[IO[str]]:
    with open(final + ".lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def _intact(final: str, note: IO[str]) -> bool:
    """Whether it is there as it was downloaded."""
    note.seek(0)
    return os.path.exists(final) and note.read() == _facts(final)


def _facts(path: str) -> str:
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns}"


def _forget(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def _lay(source: str, place: str, copy: bool) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    _forget(place)
    if copy:
        cloning.copy(source, place)
    else:
        shared_files.lay(source, place)


def _remove_unheld(path: str) -> bool:
    """Unless somebody downloads or links it at this moment."""
    if pieces.is_piece(path):
        return pieces.remove(path)
    lock_path = (path[: -len(".part")] if path.endswith(".part") else path) + ".lock"
    with open(lock_path, "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        _forget(path)
    return True
