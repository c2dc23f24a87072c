"""How several byte strings travel in one HTTP body: a JSON header line, then the bytes one after the other."""

from __future__ import annotations

import json
from typing import Any, Iterable, Sequence

from lapis.domain import strict_json
from lapis.domain.limits import FRAME_HEADER
from lapis.errors import UserErrorException


def encode(header: dict[str, Any], parts: Sequence[bytes] = ()) -> bytes:
    head = dict(header, sizes=[len(part) for part in parts])
    return b"".join([json.dumps(head, separators=(",", ":")).encode(), b"\n", *parts])


def decode(body: bytes) -> tuple[dict[str, Any], list[memoryview]]:
    """The header and the parts, uncopied. A body cut short is an error, never a shorter part."""
    end = body.find(b"\n", 0, FRAME_HEADER)
    header = strict_json.decode(body[:end]) if end >= 0 else None
    sizes = header.get("sizes") if isinstance(header, dict) else None
    if not isinstance(header, dict) or not isinstance(sizes, list) or any(type(size) is not int for size in sizes):
        raise UserErrorException("The body does not begin with a frame header.")
    return header, list(_cut(memoryview(body), end + 1, sizes))


def _cut(view: memoryview, start: int, sizes: Iterable[int]) -> Iterable[memoryview]:
    for size in sizes:
        if size < 0 or start + size > len(view):
            raise UserErrorException("The body is shorter than its frame header says.")
        yield view[start : start + size]
        start += size
    if start != len(view):
        raise UserErrorException("The body is longer than its frame header says.")
