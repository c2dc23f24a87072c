"""How many small blobs travel in one body and lie in one file: frames whose header names their hashes."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any, BinaryIO, Sequence, Sized

from lapis.errors import UserErrorException

SMALL = 1 << 20
"""Blobs up to this size, in bytes, go into packs; a larger one travels and lies alone."""


def encode(blobs: Sequence[tuple[str, bytes]]) -> bytes:
    return b"".join([header(blobs), *(content for _, content in blobs)])


def header(blobs: Sequence[tuple[str, Sized]]) -> bytes:
    """What comes before the contents, one after the other."""
    head = {"hashes": [digest for digest, _ in blobs], "sizes": [len(content) for _, content in blobs]}
    return json.dumps(head, separators=(",", ":")).encode() + b"\n"


def decode(header: dict[str, Any], parts: list[memoryview]) -> list[tuple[str, memoryview]]:
    """The blobs of a body that came as frames, each with the hash it is said to have."""
    hashes = header.get("hashes")
    if not isinstance(hashes, list) or len(hashes) != len(parts):
        raise UserErrorException("The header must name one hash for each part.")
    return [(str(digest), part) for digest, part in zip(hashes, parts)]


def read_hashes(pack: BinaryIO) -> list[str]:
    """The blobs of a pack; ValueError for one that is not whole."""
    return _read_header(pack)[0]


def read_places(pack: BinaryIO) -> dict[str, tuple[int, int]]:
    """Where each blob begins in a pack and how long it is; ValueError for a pack that is not whole."""
    hashes, sizes, start = _read_header(pack)
    return dict(zip(hashes, zip(accumulate([start, *sizes]), sizes)))


def _read_header(pack: BinaryIO) -> tuple[list[str], list[int], int]:
    line = pack.readline()
    try:
        head = json.loads(line)
        hashes, sizes = [str(digest) for digest in head["hashes"]], [int(size) for size in head["sizes"]]
    except (TypeError, KeyError, OverflowError, RecursionError):
        raise ValueError("it does not begin with a header")
    if len(hashes) != len(sizes) or any(size < 0 for size in sizes):
        raise ValueError("its header does not say one size for each hash")
    end = len(line) + sum(sizes)
    if pack.seek(0, 2) != end:
        raise ValueError(f"its header says {end} bytes")
    return hashes, sizes, len(line)
