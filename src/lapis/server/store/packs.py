"""Keeps small blobs together in pack files: one file and one rename for hundreds of them."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from lapis.domain import packs
from lapis.errors import AzureMLException
from lapis.machine import on_disk
from lapis.server.store.collected import Collected

_AT_ONCE = 512  # buffers in one write; the system's limit is 1024
_ASKED_EVERY = 6 * 3600.0  # seconds after which it is noted again that a pack was asked for
_log = logging.getLogger("lapis.server")


class PackFolder:
    """A pack is written once and never changed. Which pack holds a blob is read from the packs' headers at the start
    and kept in memory from then on: one server writes here."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._pack_of: dict[str, str] = {}
        self._asked: dict[str, float] = {}  # when it was noted last that a pack was asked for, by the monotonic clock
        self._places = lru_cache(maxsize=32)(self._read_places)
        os.makedirs(root, exist_ok=True)
        for name in os.listdir(root):
            try:
                with open(os.path.join(root, name), "rb") as pack:
                    self._learn(name, packs.read_hashes(pack))
            except (OSError, ValueError) as error:
                _log.error("Pack %s is damaged: %s. What it held counts as missing and is sent again.", name, error)

    def __contains__(self, digest: str) -> bool:
        return digest in self._pack_of

    def ask_for(self, digest: str) -> bool:
        """Whether a pack holds it; then the pack counts as new."""
        name = self._pack_of.get(digest)
        if name is None:
            return False
        if time.monotonic() - self._asked.get(name, -_ASKED_EVERY) >= _ASKED_EVERY:
            try:
                os.utime(os.path.join(self.root, name))
            except FileNotFoundError:
                self._pack_of.pop(digest, None)
                return False
            self._asked[name] = time.monotonic()
        return True

    def names(self, digests: Iterable[str]) -> list[str]:
        """The packs that hold these blobs, as far as packs do."""
        return sorted({name for name in map(self._pack_of.get, digests) if name is not None})

    def size(self, digest: str) -> int | None:
        name = self._pack_of.get(digest)
        if name is None:
            return None
        try:
            return self._places(name)[digest][1]
        except (FileNotFoundError, ValueError, KeyError):
            raise self._damaged(name, digest) from None

    def read(self, digest: str) -> bytes | None:
        """The blob, checked. One that is damaged counts as missing from now on, so that it can be sent again."""
        name = self._pack_of.get(digest)
        if name is None:
            return None
        try:
            start, size = self._places(name)[digest]
            with open(os.path.join(self.root, name), "rb", buffering=0) as pack:
                content = os.pread(pack.fileno(), size, start)
        except (FileNotFoundError, ValueError, KeyError):
            raise self._damaged(name, digest) from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise self._damaged(name, digest)
        return content

    def add(self, blobs: Sequence[tuple[str, memoryview]], temporary: str) -> str:
        """Store blobs whose hashes were checked, all of them or none; `temporary` is a path to write them to first.
        Gives the path of the pack."""
        header = packs.header(blobs)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _write_all(descriptor, [memoryview(header), *(content for _, content in blobs)])
        finally:
            os.close(descriptor)
        # named after what it holds: the same blobs sent twice are the same pack
        name = hashlib.sha256(header).hexdigest()[:32] + ".pack"
        path = os.path.join(self.root, name)
        os.replace(temporary, path)
        self._asked[name] = time.monotonic()
        self._learn(name, [digest for digest, _ in blobs])
        return path

    def collect(
        self,
        named: Callable[[str], bool],
        before: float,
        dry_run: bool,
        go_on: Callable[[], bool],
        temporary: Callable[[], str],
        alone: threading.Lock,
    ) -> Collected:
        """Remove packs of which nothing is named. One of which less than half is left gives way to a smaller one."""
        found = Collected("packs of blobs that nothing names")
        for name in [each for each in os.listdir(self.root) if go_on()]:
            path = os.path.join(self.root, name)
            try:
                places = dict(self._read_places(name))
                if os.stat(path).st_mtime >= before:
                    continue
            except (OSError, ValueError):
                continue  # damaged: doctor tells of it
            kept = {digest: place for digest, place in places.items() if named(digest)}
            left, all_of_it = (sum(size for _, size in each.values()) for each in (kept, places))
            if len(kept) == len(places) or (kept and 2 * left > all_of_it):
                continue
            with alone:
                if os.stat(path).st_mtime >= before:
                    continue  # somebody asked for it just now
                if kept and not dry_run:
                    contents = [(digest, memoryview(self.read(digest) or b"")) for digest in kept]
                    on_disk.settle_all([self.add(contents, temporary())], self.root)  # before the other one goes
                found.take(path, before, dry_run)
                found.bytes -= left
                if not dry_run:
                    found.freed -= left
                    self._forget(name, places)
        return found

    def _forget(self, name: str, hashes: Iterable[str]) -> None:
        for digest in hashes:
            if self._pack_of.get(digest) == name:
                del self._pack_of[digest]
        self._asked.pop(name, None)
        self._places.cache_clear()

    def _learn(self, name: str, hashes: Iterable[str]) -> None:
        self._pack_of.update(dict.fromkeys(hashes, name))

    def _read_places(self, name: str) -> dict[str, tuple[int, int]]:
        with open(os.path.join(self.root, name), "rb") as pack:
            return packs.read_places(pack)

    def _damaged(self, name: str, digest: str) -> AzureMLException:
        self._pack_of.pop(digest, None)
        said = f"Blob {digest} is damaged on the server's disk, in pack {name}."
        _log.error(said)
        return AzureMLException(f"{said} Submit again: what is missing is sent anew.")


def _write_all(descriptor: int, views: list[memoryview]) -> None:
    """Without joining them first: that would cost as much as writing them."""
    for at in range(0, len(views), _AT_ONCE):
        group = views[at : at + _AT_ONCE]
        left = sum(map(len, group)) - os.writev(descriptor, group)
        if left:  # a disk that is nearly full takes a part; the next write says why
            rest = memoryview(b"".join(group))[-left:]
            while len(rest):
                rest = rest[os.write(descriptor, rest) :]
