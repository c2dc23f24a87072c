"""Logs that do not grow for ever: whole files put aside by number, and long files whose beginning is given up."""

from __future__ import annotations

import contextlib
import os

LARGE, OLD_ONES = 10 << 20, 3  # bytes of a log; how many before it are kept
ENDLESS = 8 << 20  # bytes that are kept of the log of a service, which never ends; up to twice as much lies on the disk
_BLOCK = 4096


def rotate(path: str, large: int = LARGE, old_ones: int = OLD_ONES) -> bool:
    """Put a log aside that has grown large: path.1 is the newest of the old ones. Whether it did."""
    try:
        if os.path.getsize(path) < large:
            return False
    except OSError:
        return False
    for number in range(old_ones - 1, 0, -1):
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{path}.{number}", f"{path}.{number + 1}")
    os.replace(path, f"{path}.1")
    return True


def rotate_own_output(path: str, large: int = LARGE) -> None:
    """The same for the log that this process prints to: it goes on in the new one."""
    for descriptor in (1, 2):
        try:
            ours = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except OSError:
            return
        if not ours:
            return
    if rotate(path, large):
        fresh = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for descriptor in (1, 2):
            os.dup2(fresh, descriptor)
        os.close(fresh)


def give_up_beginning(path: str, keep: int = ENDLESS, before: int | None = None) -> None:
    """Give the disk back what a file holds before its last `keep` bytes, and before the position `before`.

    Its length and all positions stay: whoever writes or reads there notices nothing, but that the beginning is empty.
    Where the file system cannot, nothing is done; nor before twice as much lies there, so that it is done seldom.
    """
    with contextlib.suppress(OSError), open(path, "r+b") as file:
        found = os.fstat(file.fileno())
        end = found.st_size - keep if before is None else min(found.st_size - keep, before)
        if found.st_blocks * 512 > 2 * keep and end > 0:
            _punch(file.fileno(), end // _BLOCK * _BLOCK)  # whole blocks: the rest of one would stay, as zeros


def first_byte(descriptor: int) -> int:
    """Where the part of a file begins that was not given up."""
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA)
    except (OSError, AttributeError):  # an empty one, or a system that does not tell
        return 0
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def _punch(descriptor: int, length: int) -> None:
    import ctypes

    keep_size, punch_hole = 1, 2
    size = ctypes.c_int64
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate64(descriptor, keep_size | punch_hole, size(0), size(length)) != 0:
        raise OSError(ctypes.get_errno(), "the beginning of a file cannot be given up")
