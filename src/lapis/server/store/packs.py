"""Keeps small blobs together in pack files: one file and one rename for hundreds of them."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Sequence

from lapis.domain import packs
from lapis.errors import AzureMLException

_AT_ONCE = 512  # buffers in one write; the system's limit is 1024
_log = logging.getLogger("lapis.server")


class PackFolder:
    """A pack is written once and never changed. Which blob lies where is read from the packs' headers at the start
    and known in memory from then on: one server writes here."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._places: dict[str, tuple[str, int, int]] = {}  # hash -> name of the pack, first byte, size
        os.makedirs(root, exist_ok=True)
        for name in os.listdir(root):
            self._load(name)

    def __contains__(self, digest: str) -> bool:
        return digest in self._places

    def size(self, digest: str) -> int | None:
        place = self._places.get(digest)
        return None if place is None else place[2]

    def names(self, digests: Iterable[str]) -> list[str]:
        """The packs that hold these blobs, as far as packs do."""
        places = self._places
        return sorted({places[digest][0] for digest in digests if digest in places})

    def read(self, digest: str) -> bytes | None:
        """The blob, checked. One that is damaged counts as missing from now on, so that it can be sent again."""
        place = self._places.get(digest)
        if place is None:
            return None
        name, start, size = place
        try:
            with open(os.path.join(self.root, name), "rb", buffering=0) as pack:
                content = os.pread(pack.fileno(), size, start)
        except FileNotFoundError:
            content = b""
        if len(content) == size and hashlib.sha256(content).hexdigest() == digest:
            return content
        self._places.pop(digest, None)
        said = f"Blob {digest} is damaged on the server's disk, in pack {name}."
        _log.error(said)
        raise AzureMLException(
            f"{said} It will be stored anew when it is sent again: submit again from the same files."
        )

    def add(self, blobs: Sequence[tuple[str, memoryview]], temporary: str) -> None:
        """Store blobs whose hashes were checked, all of them or none; `temporary` is a path to write them to first."""
        header = packs.header(blobs)
        with open(temporary, "xb", buffering=0) as file:
            _write_all(file.fileno(), [memoryview(header), *(content for _, content in blobs)])
        # named after what it holds: the same blobs sent twice are the same pack
        name = hashlib.sha256(header).hexdigest()[:32] + ".pack"
        os.replace(temporary, os.path.join(self.root, name))
        self._learn(name, packs.places(header)[0])

    def _load(self, name: str) -> None:
        try:
            with open(os.path.join(self.root, name), "rb") as pack:
                self._learn(name, packs.read_places(pack))
        except (OSError, ValueError) as error:
            _log.error("Pack %s is damaged: %s. What it held counts as missing and is sent again.", name, error)

    def _learn(self, name: str, places: dict[str, tuple[int, int]]) -> None:
        self._places.update({digest: (name, start, size) for digest, (start, size) in places.items()})


def _write_all(descriptor: int, views: list[memoryview]) -> None:
    """Without joining them first: that would cost as much as writing them."""
    for at in range(0, len(views), _AT_ONCE):
        group = views[at : at + _AT_ONCE]
        left = sum(map(len, group)) - os.writev(descriptor, group)
        if left:  # a disk that is nearly full takes a part; the next write says why
            rest = memoryview(b"".join(group))[-left:]
            while len(rest):
                rest = rest[os.write(descriptor, rest) :]
