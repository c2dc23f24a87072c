"""Files that are whole or not there: written beside their place, then moved into it in one step."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Give a path to write to. What lies there becomes `path` when the block ends well, else it is removed."""
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.part"
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(draft)
        raise


def write(path: str, content: bytes, mode: int = 0o666) -> None:
    """Whatever happens meanwhile, who reads `path` finds what was there before or all of `content`."""
    with replacing(path) as draft:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)


RESERVED = ".reserved"


def reserve(path: str, size: int, mode: int = 0o600) -> None:
    """Take the room that `write_reserved` will need, as long as there is some. Done before, it is not done again."""
    if os.path.exists(path + RESERVED):
        return
    write(path + RESERVED, b" " * size, mode)


def write_reserved(path: str, content: bytes) -> None:
    """As `write`, in the room that was reserved: a disk that is full by now takes it all the same.

    Blanks stand where the room was larger. Without a reserve, or with one that is too small, it is a plain `write`.
    """
    draft = path + RESERVED
    try:
        descriptor = os.open(draft, os.O_WRONLY)
    except FileNotFoundError:
        write(path, content, 0o600)
        return
    try:
        room = os.fstat(descriptor).st_size
        written = os.pwrite(descriptor, content.ljust(room), 0)
    finally:
        os.close(descriptor)
    if written < len(content):
        write(path, content, 0o600)
        return
    os.replace(draft, path)
