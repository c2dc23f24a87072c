"""Keeps small blobs together in pack files: one file and one rename for hundreds of them."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache

from lapis.domain import packs
from lapis.errors import AzureMLException

_AT_ONCE = 512  # buffers in one write; the system's limit is 1024
_log = logging.getLogger("lapis.server")


class PackFolder:
    """A pack is written once and never changed. Which pack holds a blob is read from the packs' headers at the start
    and kept in memory from then on: one server writes here."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._pack_of: dict[str, str] = {}
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

    def add(self, blobs: Sequence[tuple[str, memoryview]], temporary: str) -> None:
        """Store blobs whose hashes were checked, all of them or none; `temporary` is a path to write them to first."""
        header = packs.header(blobs)
        with open(temporary, "xb", buffering=0) as file:
            _write_all(file.fileno(), [memoryview(header), *(content for _, content in blobs)])
        # named after what it holds: the same blobs sent twice are the same pack
        name = hashlib.sha256(header).hexdigest()[:32] + ".pack"
        os.replace(temporary, os.path.join(self.root, name))
        self._learn(name, [digest for digest, _ in blobs])

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
