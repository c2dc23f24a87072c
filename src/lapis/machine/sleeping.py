"""Sleeps until something happens: a process ends, a file grows, a signal comes. Nobody has to look again and again."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Iterable

_NEWS = 0x2 | 0x8 | 0x80 | 0x100  # of Linux' inotify: IN_MODIFY; of a folder IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE
_ONCE = 0x80000000  # IN_ONESHOT: a script that writes a million times is held up by one of them
_NOT_BLOCKING, _CLOSE_ON_EXEC = 0o4000, 0o2000000
_BLIND = 0.1  # seconds between looks where the system tells nothing


class Sleeper:
    """For the main thread, where signals come, and for as long as the process lives."""

    def __init__(self) -> None:
        self._signals, signalled = os.pipe()
        os.set_blocking(signalled, False)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        self._news = _inotify()  # closed by the end of the process alone: that takes the kernel some milliseconds
        self._pipes: set[int] = set()
        self._watched: set[str] = set()
        self._unseen: set[str] = set()
        self._doors: dict[int, int] = {}  # by process; of one that has ended, or that cannot be waited for, -1

    def watch(self, files: Iterable[str]) -> None:
        """Wake up when one of these grows, or of a folder, when something comes into it: once.

        To be called before each look at them: what comes later is not missed. What is written through a memory map, or
        from another machine, no system tells of.
        """
        wanted = set(files)
        for path in wanted - self._watched:
            if self._news < 0 or _libc.inotify_add_watch(self._news, os.fsencode(path), _NEWS | _ONCE) < 0:
                self._unseen.add(path)  # it is not there yet, say
            else:
                self._watched.add(path)
                self._unseen.discard(path)
        self._unseen &= wanted

    def hear(self, pipes: Iterable[int]) -> None:
        """Wake up when something comes through one of these, or nothing will any more. Each is heard once."""
        self._pipes.update(pipes)

    def sleep(self, seconds: float, processes: Iterable[int] = (), files: bool = True) -> bool:
        """Until one of the processes ends, a pipe or a file has news, or so many seconds are over.

        Whether a file has grown: without `files`, nobody wakes up for that.
        """
        doors = {self._door(pid): pid for pid in processes}
        if -1 in doors or (files and self._unseen):
            seconds = min(seconds, _BLIND)
        wakes = [self._signals, *self._pipes, *(door for door in doors if door >= 0)]
        if files and self._news >= 0:
            wakes.append(self._news)
        ready = select.select(wakes, [], [], max(0.0, seconds))[0]
        for descriptor in ready:
            if descriptor in self._pipes:
                os.close(descriptor)
                self._pipes.remove(descriptor)
            elif descriptor in doors:  # it has told all that it can
                os.close(descriptor)
                self._doors[doors[descriptor]] = -1
            else:
                os.read(descriptor, 65536)
        if self._news in ready:
            self._watched.clear()
        return self._news in ready

    def _door(self, pid: int) -> int:
        if pid not in self._doors:
            try:
                self._doors[pid] = os.pidfd_open(pid)
            except (OSError, AttributeError):
                self._doors[pid] = -1
        return self._doors[pid]


def _inotify() -> int:
    try:
        return int(_libc.inotify_init1(_NOT_BLOCKING | _CLOSE_ON_EXEC))
    except AttributeError:  # not Linux
        return -1


_libc = ctypes.CDLL(None, use_errno=True)
