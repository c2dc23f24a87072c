"""`python -m lapis.serving service.json`: a service, from the first worker that is ready to the last answer.

Exits with 0 when it was asked to end or another front took its place, with 3 when its workers cannot start.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from typing import Any

from lapis.errors import AzureMLException
from lapis.serving import description, handover
from lapis.serving.description import Description
from lapis.serving.front import Front
from lapis.serving.replicas import Replicas, StartFailed, say
from lapis.serving.report import EVERY, Reporter

CANNOT_START = 3
TICK = 0.1  # seconds, while requests are answered or workers come and go
REST = 1.0  # seconds, while nothing happens
IDLE_AFTER_HANDOVER = 5.0  # seconds in which a client may use its connection once more, to be told to open another
DRAIN_GRACE = 10.0  # seconds after the longest a request may take


class Service:
    def __init__(self, path: str, about: Description) -> None:
        self._path, self._about = path, about
        self._read_at = _changed_at(path)
        self._reporter = Reporter(about.report)
        self._replicas = Replicas(about, os.path.dirname(os.path.abspath(path)), say, self._tell)
        self._front = Front(about, self._replicas, say)
        self._state = "starting"
        self._error: dict[str, Any] | None = None
        self._port = about.listen.port
        self._door: handover.HandoverDoor | None = None
        self._told_at, self._told_requests = 0.0, 0
        self._leave = asyncio.Event()
        self._taken = False  # another front has our place

    async def serve(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._leave.set)
        reporting = loop.create_task(self._reporter.send_for_ever())
        ticking = loop.create_task(self._tick())
        self._tell()
        try:
            code = await self._live()
        finally:
            ticking.cancel()
            reporting.cancel()
            await self._replicas.stop()
        if self._state == "failed":
            await self._reporter.send_now()
        return code

    async def _live(self) -> int:
        starting = asyncio.ensure_future(self._replicas.start())
        leaving = asyncio.ensure_future(self._leave.wait())
        await asyncio.wait([starting, leaving], return_when=asyncio.FIRST_COMPLETED)
        if leaving.done() and not starting.done():
            starting.cancel()
            return 0
        try:
            await starting
            await self._open()
        except (StartFailed, AzureMLException) as error:
            message, traceback = error.message, getattr(error, "traceback", None)
            say(f"The service cannot start: {message}")
            self._error = {"message": message, "traceback": traceback}
            self._state = "failed"
            self._tell()
            return CANNOT_START
        await leaving
        await self._drain()
        return 0

    async def _open(self) -> None:
        """Accept connections: on the socket of the front before us, or on one of our own."""
        listen = self._about.listen
        before = await asyncio.to_thread(handover.ask, listen.handover)
        if before is not None:
            listener = before.listener
        else:
            listener = await asyncio.to_thread(handover.bind, listen.host, listen.port, listen.anywhere)
        listener.setblocking(False)
        self._port = listener.getsockname()[1]
        await self._front.listen(listener)
        if listen.handover is not None:
            self._door = handover.HandoverDoor(listen.handover, listener.dup(), self._give_way)
        if before is not None:
            before.drain()
        gc.collect()
        gc.freeze()  # what was made until now stays: looking through it again would delay requests
        self._state = "ready"
        self._tell()
        whose = "taken over from the revision before" if before is not None else "its own"
        say(f"{self._about.name}, revision {self._about.revision}, answers at port {self._port}, {whose}.")

    def _give_way(self) -> None:
        self._taken = True
        self._leave.set()

    async def _drain(self) -> None:
        self._state = "draining"
        self._front.stop_accepting(IDLE_AFTER_HANDOVER if self._taken else 0.0)
        if self._door is not None:
            self._door.close()
        self._tell()
        deadline = time.monotonic() + self._about.limits.seconds + DRAIN_GRACE
        while self._front.connections and time.monotonic() < deadline:
            for connection in list(self._front.connections):
                connection.sweep(time.monotonic())
            await asyncio.sleep(0.05)

    async def _tick(self) -> None:
        swept = 0.0
        while True:
            await self._until_the_next()
            now = time.monotonic()
            try:
                self._replicas.tick(now)
                if now - swept >= 1.0:
                    swept = now
                    self._each_second(now)
            except Exception as error:  # the clock has to go on
                say(f"Something went wrong, and is tried again: {type(error).__name__}: {error}")

    async def _until_the_next(self) -> None:
        """A service that nobody asks sleeps, and wakes with the first request."""
        stirred = self._replicas.stirred
        if stirred.is_set():
            await asyncio.sleep(TICK)
            return
        try:
            await asyncio.wait_for(stirred.wait(), REST)
        except TimeoutError:
            pass

    def _each_second(self, now: float) -> None:
        self._front.refresh_date()
        for connection in list(self._front.connections):
            connection.sweep(now)
        if now - self._told_at >= EVERY and self._front.figures.requests != self._told_requests:
            self._tell()
        changed = _changed_at(self._path)
        if changed == self._read_at:
            return
        self._read_at = changed
        try:
            self._about = description.read(self._path)
        except (AzureMLException, OSError, ValueError) as error:
            say(f"{self._path} was changed and is not followed: {error}")
            return
        self._front.take(self._about)
        self._replicas.stirred.set()
        self._tell()
        say("Its description was changed: keys, origins, limits, replicas and routes are the new ones.")

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        figures = self._front.figures
        self._told_requests = figures.requests
        body: dict[str, Any] = {
            "state": self._state,
            "port": self._port,
            "pid": os.getpid(),
            "replicas": self._replicas.states(),
            "error": self._error,
            "requests": figures.requests,
            "failures": figures.failures,
            "latency_ms": figures.latency_ms(),
            "revision": self._about.revision,
            "live": self._about.live,
        }
        try:
            self._reporter.tell(body)
        except OSError as error:
            say(f"The state could not be written: {error}")


def _changed_at(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_ino


async def _serve(path: str) -> int:
    return await Service(path, description.read(path)).serve()


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        import uvloop
    except ImportError:  # systems it does not exist for
        return asyncio.run(_serve(sys.argv[1]))
    return uvloop.run(_serve(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
