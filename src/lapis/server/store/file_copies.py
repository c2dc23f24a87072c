"""Copies between open files that the kernel makes, hashed on the way by a second thread.

On a file system that can share blocks a copy takes no time, and elsewhere less than the hash.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Thread

_PIECE = 8 << 20
_CHUNK = 1 << 20
_OUR_FAULT = (errno.ENOSPC, errno.EDQUOT)


class NotPossible(Exception):
    """These two files cannot be copied so; nothing of worth was written."""


def copy_in(source: int, target: int) -> str:
    """Copy all that `source` holds now to the empty `target`, and to the disk; the hash of what is there.

    Whoever changes `source` meanwhile changes what is copied, and never what the hash is of.
    """
    return _hashed(target, _copying(source, target, lambda: os.fdatasync(target)))


def copy_out(source: int, target: int) -> str:
    """Copy `source` to the empty `target`; the hash of what `source` holds."""
    return _hashed(source, _copying(source, target, lambda: None))


def copy_unhashed(source: int, target: int) -> None:
    for _ in _copying(source, target, lambda: None):
        pass


def _checked(source: int, target: int) -> int:
    """The size of `source`. Both are files, and on one file system: no device, no pipe, nothing of /proc."""
    try:
        of, to = os.fstat(source), os.fstat(target)
    except OSError as error:
        raise NotPossible from error
    if not (stat.S_ISREG(of.st_mode) and stat.S_ISREG(to.st_mode) and of.st_dev == to.st_dev and to.st_size == 0):
        raise NotPossible
    return of.st_size


def _copying(source: int, target: int, at_last: Callable[[], None]) -> Iterator[int]:
    """How far it has come, again and again."""
    size = _checked(source, target)
    reached: SimpleQueue[int | BaseException | None] = SimpleQueue()

    def copy() -> None:
        try:
            at = 0
            while at < size:
                more = os.copy_file_range(source, target, min(_PIECE, size - at), at, at)
                if not more:
                    raise NotPossible  # it became shorter
                at += more
                reached.put(at)
            at_last()  # beside the hashing, which takes longer
            reached.put(None)
        except BaseException as error:
            reached.put(error)

    worker = Thread(target=copy, name="copy")
    worker.start()
    try:
        while (at := reached.get()) is not None:
            if isinstance(at, BaseException):
                raise at if isinstance(at, OSError) and at.errno in _OUR_FAULT else NotPossible from at
            yield at
    finally:
        worker.join()


def _hashed(file: int, reaching: Iterator[int]) -> str:
    found, at, buffer = hashlib.sha256(), 0, bytearray(_CHUNK)
    view = memoryview(buffer)
    for reached in reaching:
        while at < reached:
            got = os.preadv(file, [view[: min(_CHUNK, reached - at)]], at)
            if not got:
                raise NotPossible  # somebody cuts it meanwhile
            found.update(view[:got])
            at += got
    return found.hexdigest()
