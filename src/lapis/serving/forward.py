"""Sends requests on to the front of another version of the service, and their answers back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httptools

from lapis.serving.call import Call

_CONNECT_SECONDS = 2.0
_OF_THE_HOP = {
    b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"te", b"upgrade", b"expect",
    b"content-length", b"x-request-id", b"host", b"sec-fetch-site",
}  # fmt: skip
_NOT_BACK = {
    b"connection", b"content-length", b"date", b"server", b"x-ms-server-version", b"x-request-id", b"x-ms-request-id",
    b"x-ms-client-request-id", b"access-control-allow-origin", b"vary",
}  # fmt: skip


class Forwarder:
    """Keeps connections to one address. A request that could not be sent is for `otherwise` to answer."""

    def __init__(self, address: str) -> None:
        self.name = address.encode()
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._idle: list[_Upstream] = []
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, call: Call, otherwise: Callable[[Call], None]) -> None:
        while self._idle:
            upstream = self._idle.pop()
            if upstream.usable:
                upstream.ask(call)
                return
        task = asyncio.get_running_loop().create_task(self._connect(call, otherwise))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def free(self, upstream: _Upstream) -> None:
        if self._closed:
            upstream.close()
        else:
            self._idle.append(upstream)

    def close(self) -> None:
        """Keep no connection; what is on its way still gets its answer."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    async def _connect(self, call: Call, otherwise: Callable[[Call], None]) -> None:
        loop = asyncio.get_running_loop()
        opening = loop.create_connection(lambda: _Upstream(self), self._host, self._port)
        try:
            _, upstream = await asyncio.wait_for(opening, _CONNECT_SECONDS)
        except (OSError, TimeoutError):
            otherwise(call)
            return
        upstream.ask(call)


class _Upstream(asyncio.Protocol):
    """One connection to the other front, for one request at a time."""

    def __init__(self, owner: Forwarder) -> None:
        self._owner = owner
        self._call: Call | None = None
        self._transport: asyncio.Transport
        self._lost = False

    @property
    def usable(self) -> bool:
        return not self._lost and not self._transport.is_closing()

    def ask(self, call: Call) -> None:
        self._call = call
        self._lines: list[bytes] = []
        self._pieces: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)
        own = call.lines.split(b"\r\n", 1)[0]  # x-request-id: the same at both
        kept = [name + b": " + value for name, value in call.headers if name not in _OF_THE_HOP]
        # under the other's own name; who may ask was looked at here
        ours = b"host: %s\r\nsec-fetch-site: same-origin\r\ncontent-length: %d" % (self._owner.name, len(call.body))
        first = b" ".join((call.method, call.target, b"HTTP/1.1"))
        self._transport.write(b"\r\n".join([first, *kept, own, ours, b"", b""]))
        if call.body:
            self._transport.write(call.body)

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, AttributeError):
            self._transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() not in _NOT_BACK:
            self._lines.append(name + b": " + value + b"\r\n")

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        call, self._call = self._call, None
        keep = self._parser.should_keep_alive()
        if call is not None:
            call.answer(self._parser.get_status_code(), b"".join(self._lines), b"".join(self._pieces))
        if keep:
            self._owner.free(self)
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        if self._call is not None:
            self._call.refuse(502, "The version of the service that was asked closed the connection without an answer.")
