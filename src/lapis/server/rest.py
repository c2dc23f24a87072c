"""The server at rest: it sleeps until somebody asks, until it is told to leave, or until it leaves by itself."""

from __future__ import annotations

import asyncio
import os
from typing import IO

import uvicorn

from lapis.server.control.lifetime import Lifetime

_LOOK_EVERY = 10.0  # seconds between looks whether the home is still there


class Server(uvicorn.Server):
    """uvicorn's own looks ten times a second whether it is to leave. This one is told."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """From any thread, from a signal too, and before it has begun."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._leaving.set)

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not await self.on_tick(0):  # told before it began
            await self._leaving.wait()


def leave_in_time(lifetime: Lifetime, lock: IO[str], idle_seconds: float) -> None:
    """When nobody needs it any more (0: never), and when its home is gone. Until then; a thread's whole work."""
    mine = os.fstat(lock.fileno()).st_ino
    while not lifetime.stopping.wait(min(_LOOK_EVERY, lifetime.seconds_until_idle(idle_seconds))):
        if not _is_there(lock.name, mine) or (idle_seconds > 0 and lifetime.idle_for(idle_seconds)):
            lifetime.stop()


def _is_there(path: str, number: int) -> bool:
    """Or somebody removed the folder: what is served is not there any more, and another server may have the place."""
    try:
        return os.stat(path).st_ino == number
    except OSError:
        return False
