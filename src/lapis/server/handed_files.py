"""Files that processes of this machine hand over open, to be copied in place of being sent.

Whoever comes to the door has a socket, sends a ticket of his own making with one open file, and stays until his request
is answered. The request, which names the ticket, comes as every other and needs the same rights: nothing is given here
to anybody. A path is never told, and no file of ours is given away (docs/decisions/0032).
"""

from __future__ import annotations

import logging
import os
import re
import selectors
import socket
import threading
import time
from contextlib import suppress

from lapis.machine import unix_sockets

_TICKET = re.compile(rb"[0-9a-f]{32}")
_MOST = 64  # connections; the one that has been here for longest makes room for the next
_PAUSE = 0.5  # seconds without a look at the door, when nobody can be let in
_log = logging.getLogger("lapis.server")


class HandedFiles:
    def __init__(self, door: str) -> None:
        self._door = door
        self._tickets: dict[socket.socket, bytes] = {}  # of everybody who is here, in the order of coming
        self._files: dict[bytes, int] = {}
        self._changing = threading.Lock()
        self._to_end: socket.socket | None = None

    def start(self) -> None:
        self._listener = self._opened()
        self._end, self._to_end = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._end, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        threading.Thread(target=self._attend, name="door", daemon=True).start()

    def stop(self) -> None:
        if self._to_end is None:  # it never began
            return
        with suppress(FileNotFoundError):
            os.unlink(self._door)
        self._to_end.close()

    def take(self, ticket: str) -> int | None:
        """The open file, which is the caller's to close; None if there is none, or it was taken before."""
        with self._changing:
            return self._files.pop(ticket.encode("latin-1"), None)

    def _opened(self) -> socket.socket:
        os.makedirs(os.path.dirname(self._door), mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            os.unlink(self._door)  # of a server that was killed: we have its place
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        with unix_sockets.short(self._door) as reachable, unix_sockets.for_us_alone():
            listener.bind(reachable)
        listener.listen(_MOST)
        return listener

    def _attend(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._end:
                    return self._close()
                try:
                    if key.fileobj is self._listener:
                        self._let_in()
                    elif isinstance(key.fileobj, socket.socket):
                        self._hear(key.fileobj)
                except OSError as error:  # there are no descriptors left, say
                    _log.warning("Somebody came to %s and could not be let in: %s", self._door, error)
                    time.sleep(_PAUSE)

    def _let_in(self) -> None:
        connected, _ = self._listener.accept()
        if len(self._tickets) >= _MOST:
            self._let_go(next(iter(self._tickets)))
        connected.setblocking(False)
        self._tickets[connected] = b""
        self._selector.register(connected, selectors.EVENT_READ)

    def _hear(self, connected: socket.socket) -> None:
        """A ticket with its file, once; else he leaves, or is shown out."""
        said, files = b"", list[int]()
        with suppress(OSError):
            said, files = unix_sockets.receive_files(connected, 64)
        if len(files) == 1 and _TICKET.fullmatch(said) and not self._tickets.get(connected):
            with self._changing:
                if said not in self._files:
                    self._tickets[connected], self._files[said] = said, files.pop()
        for left in files:
            os.close(left)
        if said and said == self._tickets.get(connected) and not files:
            with suppress(OSError):
                connected.send(b"+")
        else:
            self._let_go(connected)

    def _let_go(self, connected: socket.socket) -> None:
        self._selector.unregister(connected)
        connected.close()
        descriptor = self.take(self._tickets.pop(connected).decode())
        if descriptor is not None:
            os.close(descriptor)

    def _close(self) -> None:
        for connected in list(self._tickets):
            self._let_go(connected)
        self._selector.close()
        self._listener.close()
        self._end.close()
