"""Pieces of remote files in a shared cache: each a file of its own with a checksum at its end, whole or not there.

They lie beside the whole files, as `<key>.<begin>.piece`, and are cleared away like them. Who wants a piece that
somebody is fetching waits for it. Light: a download in the user's interpreter takes what a stream has fetched.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import Callable, Iterable, Iterator, Union

from lapis.domain.data import PIECE

SUFFIX = ".piece"
_CHUNK = 1 << 18
_CHECK = 4  # bytes of checksum behind the content
Chunk = Union[bytes, memoryview]


class Piece:
    """Part of a file that is open: any thread may read it, also after the cache has let go of it."""

    __slots__ = ("_at", "_file")

    def __init__(self, file: int, at: int = 0) -> None:
        self._file = file
        self._at = at  # where in the file the piece begins

    def read_into(self, room: memoryview, begin: int) -> None:
        """Fill `room` with what begins there."""
        if os.preadv(self._file, [room], self._at + begin) != len(room):
            raise EOFError("a file of the cache was cut off while it was read")

    def content(self, length: int) -> bytes:
        return os.pread(self._file, length, self._at)

    def is_intact(self, length: int) -> bool:
        """Whether it has this length, and the checksum with which it was written."""
        if os.fstat(self._file).st_size != length + _CHECK:
            return False
        room, check = memoryview(bytearray(min(length, _CHUNK))), 0
        for at in range(0, length, _CHUNK):
            part = room[: length - at]
            self.read_into(part, at)
            check = zlib.crc32(part, check)
        return os.pread(self._file, _CHECK, length) == _bytes(check)

    def __del__(self) -> None:
        os.close(self._file)


def find(whole: str, begin: int, length: int) -> Piece | None:
    """A piece of the file that would be kept at `whole`; None if it is not here as it was fetched."""
    path = path_of(whole, begin)
    try:
        piece = Piece(os.open(path, os.O_RDONLY))
    except FileNotFoundError:
        return None
    if not piece.is_intact(length):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used now: the last to be cleared away
    return piece


def obtain(whole: str, begin: int, length: int, fetch: Callable[[], Iterable[Chunk]]) -> Piece:
    """The same, fetched if it is not here: once, however many processes want it."""
    found = find(whole, begin, length)
    if found is not None:
        return found
    path = path_of(whole, begin)
    with _writing(path + ".part") as part:
        found = find(whole, begin, length)  # it came while we waited
        if found is not None:
            os.remove(path + ".part")
            return found
        os.ftruncate(part, 0)
        with open(part, "wb", closefd=False) as file:
            check = 0
            for chunk in fetch():
                file.write(chunk)
                check = zlib.crc32(chunk, check)
            if file.tell() != length:
                raise EOFError(f"{length} bytes were asked for, and {file.tell()} came")
            file.write(_bytes(check))
        piece = Piece(os.open(path + ".part", os.O_RDONLY))
        os.replace(path + ".part", path)
        return piece


def drop(whole: str, size: int) -> None:
    """All pieces of a file that is whole now."""
    for begin in range(0, size, PIECE):
        remove(path_of(whole, begin))


def is_piece(path: str) -> bool:
    """Whether it is one, or was about to become one."""
    return path.endswith((SUFFIX, SUFFIX + ".part"))


def remove(path: str) -> bool:
    """Let go of a piece: who has it open reads on. False if it is being written."""
    import fcntl

    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        if _lies_at(path, file.fileno()):
            os.remove(path)
    return True


def path_of(whole: str, begin: int) -> str:
    return f"{whole}.{begin}{SUFFIX}"


def _bytes(check: int) -> bytes:
    return check.to_bytes(_CHECK, "big")


@contextlib.contextmanager
def _writing(path: str) -> Iterator[int]:
    """A file at `path` that nobody else writes to; what a process that was killed left there is taken over."""
    import fcntl

    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _lies_at(path, file):  # else it was moved to its place or removed while we waited
                try:
                    yield file
                except BaseException:
                    os.remove(path)
                    raise
                return
        finally:
            os.close(file)


def _lies_at(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False
