"""One connection to the server, with as much of HTTP/1.1 as is spoken there.

http.client would do, but its parsers cost more than a request of ours, and importing it more than a server's answer.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator

from lapis.errors import UserErrorException

_LONGEST_LINE = 65536
_PIECE = 1 << 20
_PORTS = {"http": 80, "https": 443}
_ADDRESS = re.compile(r"(\[[^]]+\]|[^:/]+)(?::(\d+))?$")


class Broken(ConnectionError):
    """The answer ended early, or is none."""


class Wire:
    """Used by one thread. A new one connects with its first request."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.free = True  # for the next request: the last answer was read to its end
        self._socket: Any = None
        self._reader: Any = None

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def ask(self, method: str, target: str, headers: str, body: Any, size: int, timeout: float) -> Answer:
        """Send a request; `body` is bytes, or yields them. What the server says to it is to be read before the next."""
        scheme, _, address = self.url.partition("://")
        if self._socket is None:
            self._connect(scheme, address, timeout)
        elif self._socket.gettimeout() != timeout:
            self._socket.settimeout(timeout)
        self.free = False
        head = f"{method} {target} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Length: {size}\r\n\r\n".encode()
        if isinstance(body, bytes):
            self._socket.sendall(head + body)  # in one piece: each costs both sides a wake-up
        else:
            try:
                self._send(head, body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the server may have said why it takes no more: that its disk is full, say
        return Answer(self, self._reader)

    def close(self) -> None:
        if self._socket is not None:
            self._reader.close()
            self._socket.close()
            self._socket = None

    def __del__(self) -> None:
        self.close()  # a client that is forgotten leaves no open socket behind

    def _connect(self, scheme: str, address: str, timeout: float) -> None:
        import socket

        found = _ADDRESS.match(address)
        if scheme not in _PORTS or found is None or int(found.group(2) or 0) > 65535:  # which would be another one
            raise UserErrorException(f"{self.url!r} is no address of a server. One looks like http://HOST:PORT.")
        host, port = found.group(1).strip("[]"), int(found.group(2) or _PORTS[scheme])
        made = socket.create_connection((host, port), timeout)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a body that comes in pieces need not wait
        if scheme == "https":
            import ssl

            made = ssl.create_default_context().wrap_socket(made, server_hostname=host)
        self._socket, self._reader = made, made.makefile("rb")

    def _send(self, head: bytes, body: Iterable[bytes]) -> None:
        self._socket.sendall(head)
        for piece in body:
            self._socket.sendall(piece)


class Answer:
    """Its status is there at once; its body is read by whoever wants it."""

    def __init__(self, wire: Wire, reader: Any) -> None:
        self._wire, self._reader = wire, reader
        version, _, status = self._line().partition(b" ")
        if version != b"HTTP/1.1":
            raise Broken("What answers there does not speak HTTP/1.1.")
        self.status = _number(status[:3])
        headers = {}
        for line in iter(self._line, b""):
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip().lower()
        self._chunked = headers.get(b"transfer-encoding") == b"chunked"
        length = b"0" if self.status in (204, 304) else headers.get(b"content-length")
        self._length = None if length is None or self._chunked else _number(length)
        self._last = headers.get(b"connection") == b"close" or (self._length is None and not self._chunked)

    def read(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        if self._chunked:
            for size in iter(lambda: _number(self._line().partition(b";")[0], 16), 0):
                yield self._exactly(size)
                self._line()
            while self._line():
                pass  # what may follow the last chunk
        elif self._length is None:
            yield from iter(lambda: self._reader.read(_PIECE), b"")
        else:
            for start in range(0, self._length, _PIECE):
                yield self._exactly(min(_PIECE, self._length - start))
        if self._last:
            self._wire.close()
        self._wire.free = True

    def _exactly(self, size: int) -> bytes:
        data: bytes = self._reader.read(size)
        if len(data) < size:
            raise Broken("The connection was lost in the middle of an answer.")
        return data

    def _line(self) -> bytes:
        line: bytes = self._reader.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise Broken("The connection was lost in the middle of an answer.")
        return line.rstrip(b"\r\n")


def _number(text: bytes, base: int = 10) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise Broken(f"The answer cannot be read: {text[:80]!r} is no number.") from None
