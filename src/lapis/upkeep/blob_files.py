"""Blobs as they lie on the disk: each in a file of its own, or in a pack."""

from __future__ import annotations

import os
from collections.abc import Callable

from lapis.domain import packs


def blob_reader(home: str) -> Callable[[str], bytes]:
    """Reads blobs of a home that no server has to serve: in files of their own and in packs."""
    where = packs_of(home)

    def read(digest: str) -> bytes:
        pack = where.get(digest)
        if pack is None:
            with open(loose(home, digest), "rb") as file:
                return file.read()
        with open(pack, "rb") as file:
            start, size = packs.read_places(file)[digest]
            file.seek(start)
            return file.read(size)

    return read


def packs_of(home: str) -> dict[str, str]:
    """The path of the pack that holds a blob, for each that lies in one."""
    found: dict[str, str] = {}
    folder = os.path.join(home, "blobs", "packs")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        try:
            with open(os.path.join(folder, name), "rb") as file:
                found.update(dict.fromkeys(packs.read_hashes(file), os.path.join(folder, name)))
        except (OSError, ValueError):
            continue
    return found


def loose(home: str, digest: str) -> str:
    return os.path.join(home, "blobs", digest[:2], digest[2:])
