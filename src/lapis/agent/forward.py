"""Lets processes in a network of their own reach the server: the port that they know, forwarded to where it is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from lapis.machine import networks


def to_server(network: str, url: str, find: Callable[[], str]) -> None:
    """Listen in `network` where `url` says, as long as this process lives; `find` tells where the server is now."""
    listener = networks.listener(network, urlsplit(url).port or 80)
    threading.Thread(target=_accept, args=(listener, find), daemon=True).start()


def _accept(listener: socket.socket, find: Callable[[], str]) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_connect, args=(connection, find), daemon=True).start()


def _connect(connection: socket.socket, find: Callable[[], str]) -> None:
    with connection:
        place = urlsplit(find())
        try:
            server = socket.create_connection((place.hostname or "", place.port or 80), timeout=10.0)
        except OSError:
            return  # closed: whoever asked tries again
        with server:
            server.settimeout(None)
            back = threading.Thread(target=_pump, args=(server, connection), daemon=True)
            back.start()
            _pump(connection, server)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one side is gone: the other learns it by the end of its stream
