"""Who may remove from a home: collecting waits while a backup is made, and a repair while anybody is at it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from lapis.errors import Conflict

_LOCK = "upkeep.lock"


@contextmanager
def collecting(home: str) -> Iterator[None]:
    """The right to remove what nobody needs."""
    with _held(home, fcntl.LOCK_EX | fcntl.LOCK_NB, "A backup or another collection of"):
        yield


@contextmanager
def copying(home: str) -> Iterator[None]:
    """Nothing is removed within. Waits for a collection that goes on."""
    with _held(home, fcntl.LOCK_SH, ""):
        yield


@contextmanager
def without_server(home: str, what: str) -> Iterator[None]:
    """No server works here within."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    with open(os.path.join(home, "server.lock"), "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"A server of {home} runs, and {what} needs it to be stopped: `lapis stop`.") from None
        yield


@contextmanager
def _held(home: str, how: int, who: str) -> Iterator[None]:
    with open(os.open(os.path.join(home, _LOCK), os.O_RDWR | os.O_CREAT, 0o600), "a") as lock:
        try:
            fcntl.flock(lock, how)
        except BlockingIOError:
            raise Conflict(f"{who} {home} is under way. Try again when it is done.") from None
        yield
