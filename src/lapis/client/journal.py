"""Where a process writes what it logs: an append-only file, so that logging never waits and never fails the caller."""

from __future__ import annotations

import os
import sys
import threading

from lapis.domain.limits import POINT
from lapis.domain.metrics import Point, to_line
from lapis.errors import UserErrorException


class Journal:
    """One line for each logged thing, each written by a single append: processes and threads may share the file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._pid = 0
        self._torn = False
        self._lost = 0
        self._opening = threading.Lock()

    def append(self, point: Point) -> None:
        """Keep `point`, or say once on stderr why not. Never raises for the disk's sake."""
        line = to_line(point)
        if len(line) > POINT:
            raise UserErrorException(
                f"Metric '{point.name}' cannot hold {len(line)} bytes: at most {POINT}. Save it as a file in outputs/."
            )
        if self._torn:
            line = b"\n" + line  # ends the line that a full disk cut short
        try:
            descriptor = self._descriptor
            if descriptor is None:
                descriptor = self._open()
            written = os.write(descriptor, line)
        except OSError as error:
            self._complain(error)
            return
        self._torn = written < len(line)
        if self._torn:
            self._complain(OSError("the disk took only a part of it"))

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        with self._opening:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
                self._descriptor = os.open(self.path, flags, 0o600)
            return self._descriptor

    def _complain(self, error: OSError) -> None:
        self._lost += 1
        if self._lost == 1:
            print(
                f"Lapis: a metric could not be written to {self.path} ({error}); later ones are tried again.",
                file=sys.stderr,
            )
