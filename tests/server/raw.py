"""HTTP by hand: whatever bytes a test wants to send, and all that comes back."""

from __future__ import annotations

import socket
from contextlib import closing


def opened(port: int, data: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), 20)
    made.sendall(data)
    return made


def answer(connected: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    got = b""
    try:
        while piece := connected.recv(65536):
            got += piece
    except ConnectionResetError:
        pass
    return got


def said(port: int, data: bytes) -> bytes:
    """What is answered to one request that asks for the connection to be closed, or is refused."""
    with closing(opened(port)) as connected:
        try:
            connected.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            pass  # refused before all of it was sent
        return answer(connected)


def status(answered: bytes) -> int:
    return int(answered.split(b" ", 2)[1]) if answered else 0
