"""Where a process writes what it logs: an append-only file, so that logging never waits and never fails the caller."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading

from lapis.client.unwritten import Unwritten
from lapis.domain.limits import POINT
from lapis.domain.metrics import Point, to_line
from lapis.errors import UserErrorException


class Journal:
    """One line for each logged thing, each written by a single append: processes and threads may share the file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.unwritten = Unwritten(path)
        self._descriptor: int | None = None
        self._opening = threading.Lock()
        self._complained = False

    def append(self, point: Point) -> None:
        """Keep `point`: on disk or, while that has no room, in memory. Never raises for the disk's sake."""
        line = to_line(point)
        if len(line) > POINT:
            raise UserErrorException(
                f"Metric '{point.name}' cannot hold {len(line)} bytes: at most {POINT}. Save it as a file in outputs/."
            )
        left = line if self.unwritten else self._write(line)
        if left is not None:
            self.unwritten.keep(self._write, left)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, line: bytes) -> bytes | None:
        """None if that is done, else what is to be written when there is room again."""
        try:
            descriptor = self._descriptor
            if descriptor is None:
                descriptor = self._open()
            written = os.write(descriptor, line)
        except OSError as error:
            return self._missed(error, line)
        if written == len(line):
            return None
        # somebody else's line may come next, so one that was cut is given up and comes again, whole
        return b"\n" if written == len(line) - 1 else b"\n" + line

    def _missed(self, error: OSError, line: bytes) -> bytes | None:
        if error.errno == errno.EBADF:  # the script closed what it does not know: it can be opened again
            self._descriptor = None
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return line
        if not self._complained:  # its folder is gone: there will never be room
            self._complained = True
            with contextlib.suppress(OSError):
                print(f"Lapis: what is logged is lost, {self.path} is gone ({error.strerror}).", file=sys.stderr)
        return None

    def _open(self) -> int:
        with self._opening:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
                self._descriptor = os.open(self.path, flags, 0o600)
            return self._descriptor
