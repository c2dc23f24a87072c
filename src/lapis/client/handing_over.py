"""Hands an open file to a server of this machine, which copies it where it lies: nothing is sent.

A request names the file by a ticket, which whoever handed it over made up. The server is never told a path, and gives
none of its own files away: what it may read or write is what we have opened.
"""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

from lapis.machine import unix_sockets

TICKET = "Lapis-File"  # the header that names it
LEAST = 1 << 20  # bytes: less is sent sooner than it is handed over
_SECONDS = 3.0  # then it is sent


@contextlib.contextmanager
def handed_over(door: str, descriptor: int) -> Iterator[str]:
    """The ticket of the file, for as long as this lasts. An OSError where nobody takes it."""
    import socket

    ticket = os.urandom(16).hex()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connected:
        connected.settimeout(_SECONDS)
        with unix_sockets.short(door) as reachable:
            connected.connect(reachable)
        unix_sockets.send_file(connected, ticket.encode(), descriptor)
        if not connected.recv(1):
            raise ConnectionRefusedError("The server has as many files in its hands as it takes.")
        yield ticket
