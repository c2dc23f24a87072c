"""The one place where what is packed is unpacked: within bounds, and never more of it in memory than a piece.

A small file may unfold to more than a machine has. So nothing here says "all of it": a piece after the other, at most
UNFOLDED_RATIO times what was packed, and an error that says so. Nothing is written anywhere, so no name in an archive
can lead out of a folder.
"""

from __future__ import annotations

import bz2
import lzma
import zipfile
import zlib
from typing import Any, BinaryIO, Callable, Iterator

from lapis.domain.limits import UNFOLDED, UNFOLDED_ALWAYS, UNFOLDED_RATIO, in_bytes
from lapis.errors import UserErrorException

PIECE = 1 << 20

_FORMS: tuple[tuple[tuple[bytes, ...], Callable[[], Any]], ...] = (
    ((b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"), zlib.decompressobj),
    ((b"\x1f\x8b",), lambda: zlib.decompressobj(31)),  # gzip
    ((b"BZh",), bz2.BZ2Decompressor),
    ((b"\xfd7zXZ\x00", b"\x5d\x00\x00"), lzma.LZMADecompressor),
)


def unpacked(file: BinaryIO, what: str, most: int | None = None) -> Iterator[bytes]:
    """The bytes of `file`, piece by piece, unfolded if zlib, gzip, bzip2 or LZMA packed them. `what` is its name.

    What only looks packed, or is damaged, ends early: whoever looks through it finds nothing.
    """
    file.seek(0)
    start = file.read(8)
    size = file.seek(0, 2)
    file.seek(0)
    for beginnings, make in _FORMS:
        if start.startswith(beginnings):
            return _within(_unfolded(file, make()), what, _most(size) if most is None else most)
    return iter(lambda: file.read(PIECE), b"")


def zip_member(file: BinaryIO, name: str, what: str, most: int) -> bytes | None:
    """One file of a zip archive, of at most `most` bytes; None if there is none, or the archive is damaged."""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(name) as member:
            # what the archive says of its size is not believed: it is read no further than it may be
            data = member.read(most + 1)
    except (KeyError, ValueError, OSError, EOFError, NotImplementedError, RuntimeError, zlib.error, lzma.LZMAError):
        return None
    except zipfile.BadZipFile:
        return None
    if len(data) > most:
        raise _too_much(f"'{name}' in {what}", most)
    return data


def _most(packed: int) -> int:
    return min(UNFOLDED, max(UNFOLDED_ALWAYS, packed * UNFOLDED_RATIO))


def _unfolded(file: BinaryIO, unfold: Any) -> Iterator[bytes]:
    try:
        while not unfold.eof:
            packed = getattr(unfold, "unconsumed_tail", b"") or (b"" if _has_more(unfold) else file.read(PIECE))
            piece = unfold.decompress(packed, PIECE)
            if not piece and not packed and not _has_more(unfold):
                return  # cut short
            yield piece
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        return


def _has_more(unfold: Any) -> bool:
    """Whether bzip2 or LZMA hold something back that was given to them before. zlib gives it back instead."""
    return not getattr(unfold, "needs_input", True)


def _within(pieces: Iterator[bytes], what: str, most: int) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > most:
            raise _too_much(what, most)
        yield piece


def _too_much(what: str, most: int) -> UserErrorException:
    return UserErrorException(f"{what} unfolds to more than {in_bytes(most)}, and is not read any further.")
