"""How a front takes the place of the one before it: the listening socket itself changes hands, no connection is lost.

The new front connects to the socket `handover`, is given the listening socket, accepts on it, puts its own `handover`
in place, and says so; then the old one drains. If the new one goes away before that, nothing has changed.
"""

from __future__ import annotations

import array
import asyncio
import os
import socket
import struct
import time
from collections.abc import Callable

from lapis.errors import UserErrorException
from lapis.machine import listening
from lapis.machine.unix_sockets import for_us_alone, short

ACCEPTING = b"accepting\n"
_SECONDS = 10.0
_PORT_SECONDS = 3.0  # for a front that is just ending to leave its port


class Predecessor:
    """The front before this one, as long as it waits to hear that its place is taken."""

    def __init__(self, connected: socket.socket, listener: socket.socket) -> None:
        self._connected = connected
        self.listener = listener

    def drain(self) -> None:
        """To be called when connections are accepted here and whoever comes next finds us."""
        try:
            self._connected.sendall(ACCEPTING)
        except OSError:
            pass  # gone already: all the better
        self._connected.close()


def ask(path: str | None) -> Predecessor | None:
    """The front that serves now; None if nobody answers."""
    if path is None or not os.path.lexists(path):
        return None
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connected.settimeout(_SECONDS)
    try:
        with short(path) as reachable:
            connected.connect(reachable)
        listener = _received(connected)
    except OSError:
        connected.close()
        return None
    if listener is None:
        connected.close()
        return None
    return Predecessor(connected, listener)


def bind(host: str, port: int, anywhere: bool = False) -> socket.socket:
    """A listening socket of our own, on an address that may be listened on; with `anywhere` on any."""
    host = host if anywhere else listening.address_of(host, f"The address {host!r}", "a service")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    deadline = time.monotonic() + _PORT_SECONDS
    while True:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(2048)
            return listener
        except OSError as error:
            listener.close()
            if time.monotonic() > deadline or not port:
                raise UserErrorException(f"The service cannot listen at {host}:{port}: {error.strerror}.")
            time.sleep(0.1)


class HandoverDoor:
    """Waits at `handover` for whoever takes our place."""

    def __init__(self, path: str, listener: socket.socket, taken: Callable[[], None]) -> None:
        self._path, self._listener, self._taken = path, listener, taken
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._tasks: set[asyncio.Task[None]] = set()
        own = f"{path}.{os.getpid()}"
        if os.path.lexists(own):
            os.unlink(own)
        with short(own) as reachable, for_us_alone():
            self._door.bind(reachable)
        self._door.listen(4)
        self._mark = os.stat(own).st_ino
        os.rename(own, path)  # in one step: there is always somebody at the door
        self._start(self._wait())

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._door.close()
        self._listener.close()  # or whoever connects now would wait for us in vain
        try:
            if os.stat(self._path).st_ino == self._mark:
                os.unlink(self._path)
        except FileNotFoundError:
            pass

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connected, _ = await loop.sock_accept(self._door)
            self._start(self._hand_over(connected))

    async def _hand_over(self, connected: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with connected:
            if _user_of(connected) not in (os.getuid(), 0):
                return
            fds = array.array("i", [self._listener.fileno()])
            try:
                connected.sendmsg([b"listener"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
                said = await loop.sock_recv(connected, len(ACCEPTING))
            except OSError:
                return
            if said == ACCEPTING:
                self._taken()

    def _start(self, work: object) -> None:
        task = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type, var-annotated]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _received(connected: socket.socket) -> socket.socket | None:
    fds = array.array("i")
    data, ancillary, _, _ = connected.recvmsg(64, socket.CMSG_SPACE(fds.itemsize))
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return socket.socket(fileno=fds[0]) if fds else None


def _user_of(connected: socket.socket) -> int:
    content = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", content)[1])
