"""What a process logged and could not write, for want of room: held in memory, and written as soon as there is some.

A script neither fails nor waits for its disk's sake. Whoever tells how the run ended must know of what was held until
the end, so a mark lies beside the journal meanwhile: an empty file, which a disk takes that takes nothing else. A mark
that is still there when its process has ended is told in the verdict.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import sys
import threading
import time
from typing import Callable, Iterator

PATIENCE = 30.0  # seconds that a process which ends waits for room
_MOST = 32 << 20  # bytes that are held; what comes beyond is lost, and counted
_AGAIN_EVERY = 0.25
_HELD = ".held."

Write = Callable[[bytes], "bytes | None"]
"""Tries to write; None if that is done, else what is to be tried later."""


class Unwritten:
    """The writes of one journal and its files, in their order. Nothing of it is alive until the first one fails."""

    def __init__(self, journal: str) -> None:
        self._journal = journal
        self._known = False  # to the end of the process, and to its forks
        self._begin()

    def _begin(self) -> None:
        """Also in a forked child: what is held is its parent's to write."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._writes: collections.deque[tuple[Write, bytes]] = collections.deque()
        self._held = 0
        self._lost = 0
        self._mark: str | None = None

    def __bool__(self) -> bool:
        """Whether something is held: what comes next has to wait behind it."""
        return bool(self._writes)

    def keep(self, write: Write, data: bytes) -> None:
        with self._lock:
            if self._mark is None:
                self._say()
            if self._held + len(data) > _MOST:
                self._lost += 1
                return
            self._writes.append((write, data))
            self._held += len(data)
            if self._thread is None:
                thread = threading.Thread(target=self._retry, name="lapis-unwritten", daemon=True)
                with contextlib.suppress(RuntimeError):  # no more threads, or the interpreter ends: `finish` writes it
                    thread.start()
                    self._thread = thread

    def finish(self, seconds: float) -> list[str]:
        """Nothing more is to come: wait so long for room; what is lost then, in words."""
        deadline = time.monotonic() + seconds
        while not self._drained():
            if time.monotonic() > deadline:
                break
            time.sleep(_AGAIN_EVERY)
        with self._lock:
            self._lost += len(self._writes)
            self._writes.clear()
            self._settle()
        return [_told(os.getpid(), self._lost)] if self._lost else []

    def _say(self) -> None:
        if not self._known:
            self._known = True
            atexit.register(self._at_exit)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._begin)
            with contextlib.suppress(OSError):  # stderr is a file on the same disk, as a rule
                print(f"Lapis: {self._journal} cannot be written; what is logged is held in memory.", file=sys.stderr)
        for prefix in _prefixes(self._journal):
            self._mark = f"{prefix}{os.getpid()}"
            with contextlib.suppress(OSError):
                open(self._mark, "wb").close()
                return

    def _retry(self) -> None:
        while not self._drained():
            time.sleep(_AGAIN_EVERY)

    def _drained(self) -> bool:
        with self._lock:
            while self._writes:
                write, data = self._writes[0]
                left = write(data)
                if left is not None:
                    self._writes[0] = write, left
                    return False
                self._writes.popleft()
                self._held -= len(data)
            self._held = 0
            self._settle()
            self._thread = None
            return True

    def _settle(self) -> None:
        """Nothing is held any more: the mark goes, or says how much was lost."""
        if self._mark is None:
            return
        with contextlib.suppress(OSError):
            if self._lost:
                os.replace(self._mark, f"{self._mark}.{self._lost}")
            else:
                os.remove(self._mark)
        self._mark = None

    def _at_exit(self) -> None:
        self.finish(PATIENCE)


def lost_beside(journal: str) -> list[str]:
    """What processes that have ended held until then, in words."""
    told = []
    for mark in sorted(_marks(journal)):
        pid, _, count = mark.rpartition(_HELD)[2].partition(".")
        told.append(_told(pid, count))
    return told


def remove_marks(journal: str) -> None:
    """They were told."""
    for mark in list(_marks(journal)):
        with contextlib.suppress(OSError):
            os.remove(mark)


def _prefixes(journal: str) -> list[str]:
    """What marks begin with: beside the journal or, where a run may write to that and not beside it, in its home."""
    folder, name = os.path.split(journal)
    return [os.path.join(folder, name + _HELD), os.path.join(folder, "home", name + _HELD)]


def _marks(journal: str) -> Iterator[str]:
    for prefix in _prefixes(journal):
        folder, name = os.path.split(prefix)
        with contextlib.suppress(OSError):
            yield from (os.path.join(folder, each) for each in os.listdir(folder) if each.startswith(name))


def _told(pid: object, count: object) -> str:
    what = f"{count} things that" if count else "what"
    return f"{what} process {pid} logged on a disk without room"
