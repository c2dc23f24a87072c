"""HTTP/1.1 on one connection: reads requests within limits, has them answered in order, and survives whatever comes."""

from __future__ import annotations

import asyncio
import http
import time
from collections import deque
from typing import TYPE_CHECKING

import httptools

from lapis.domain.http_head import head_fault, overhead_fault
from lapis.domain.limits import BODY_RATE, HTTP_HEAD, IDLE_SECONDS
from lapis.serving.call import Call

if TYPE_CHECKING:
    from lapis.serving.front import Front

ID_CHARACTERS = 100
LINGER_SECONDS = 2.0
WRITE_SECONDS = 30.0  # in which a client has to take some of its answer
_SMALL_BODY = 64 << 10  # a refused request's body that is read all the same, so that the connection can be kept
_JOINED = 32 << 10

STATUS = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus if status >= 200
}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.Protocol):
    def __init__(self, front: Front) -> None:
        self.front = front
        self.since = time.monotonic()  # when it fell idle, or began to send a request
        self.reading = False  # a request has begun to arrive
        self.lingering = False  # answered for good; what still comes is thrown away
        self.stalled: float | None = None  # since when the client does not take its answer
        self.asked: deque[Call] = deque()  # the first is being answered
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._fresh = True
        self._paused = False
        self._begin_request()

    # asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        if not self.front.welcome(self):
            self._refuse_connection(503, "The service has as many connections as it can hold.")

    def data_received(self, data: bytes) -> None:
        if self.lingering:
            return
        self._received += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            self._refuse_connection(400, f"This is not HTTP: {error}.")
        except Exception as error:  # nothing that a client sends may end the front
            self.front.say(f"A request could not be read: {type(error).__name__}: {error}")
            self._refuse_connection(400, "The request cannot be read.")
        else:
            if self.reading and not self.lingering:
                self._check_overhead()

    def _check_overhead(self) -> None:
        if self._call is not None:
            fault = overhead_fault(self._received, self._call.size)
            if fault is not None:
                self._refuse_connection(*fault)
        elif self._received > HTTP_HEAD:
            self._refuse_connection(431, f"The header is longer than {HTTP_HEAD} bytes.")

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                if self._parser.get_method() == b"CONNECT":
                    raise httptools.HttpParserError("CONNECT is not possible here") from None
                data = self._without_the_offer() + data[offer.args[0] :]

    def _without_the_offer(self) -> bytes:
        """The head of a request that offers another protocol, which is not taken: it goes on as if it had not."""
        kept = [name + b": " + value for name, value in self._headers if name not in (b"upgrade", b"connection")]
        head = b" ".join((self._parser.get_method(), self._target, b"HTTP/1.1"))
        self._parser = httptools.HttpRequestParser(self)
        self._begin_request()
        return b"\r\n".join((head, *kept, b"", b""))

    def pause_writing(self) -> None:
        self.stalled = time.monotonic()

    def resume_writing(self) -> None:
        self.stalled = None

    def connection_lost(self, error: Exception | None) -> None:
        self.lingering = True
        self.front.farewell(self)
        if self._call is not None:
            self.front.release(self._call)
        for call in self.asked:
            call.done = True  # nobody is there to hear the answer
            self.front.release(call)
        self.asked.clear()

    # httptools

    def _begin_request(self) -> None:
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._call: Call | None = None
        self._received = 0

    def on_message_begin(self) -> None:
        self.reading, self._fresh = True, False
        self.since = time.monotonic()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._call is None:  # what follows the last chunk is nobody's
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        if self.lingering or parser.should_upgrade():
            return
        call = self._call = Call(self, parser.get_method(), self._target, self._headers)
        call.keep_alive = parser.should_keep_alive()
        call.old_client = parser.get_http_version() == "1.0"
        call.lines, refused = self.front.ids(call)
        fields = call.fields
        fault = head_fault(self._target, self._headers, call.old_client)
        if fault is not None:
            refused = (*fault, b"")
        announced = int(fields.get(b"content-length", b"0")) if fault is None else 0
        if refused is not None:
            call.refused, call.keep_alive = refused, False
        else:
            call.refused = self.front.check(call, announced)
        if call.refused is None:
            if b"expect" in fields and fields[b"expect"].lower() == b"100-continue" and not self.asked:
                self._transport.write(_CONTINUE)
        elif refused is not None or announced > _SMALL_BODY or b"transfer-encoding" in fields or b"expect" in fields:
            # Said before all of it was sent, and the rest is not read.
            call.keep_alive = False
            self.lingering = True
            self._enqueue(call)

    def on_body(self, body: bytes) -> None:
        call = self._call
        if call is None or self.lingering:
            return
        self._pieces.append(body)
        call.size += len(body)
        refused = self.front.hold(call, len(body))
        if refused is not None and call.refused is None:
            call.refused = refused
            call.keep_alive = False
            self.lingering = True
            self._pieces.clear()
            self._enqueue(call)

    def on_message_complete(self) -> None:
        call = self._call
        if call is None or self.lingering:
            return
        pieces = self._pieces
        call.body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.reading = False
        self._enqueue(call)
        self._begin_request()

    # Answers

    def _enqueue(self, call: Call) -> None:
        call.arrived = time.monotonic()
        self.asked.append(call)
        if len(self.asked) == 1:
            self.front.begin(call)
        elif not self._paused:
            self._paused = True
            self._transport.pause_reading()  # one request at a time: what comes behind it waits outside

    def answered(self, call: Call, status: int, lines: bytes, body: bytes) -> None:
        """The first in the row has its answer."""
        front = self.front
        front.release(call)
        keep = call.keep_alive and not front.draining
        if not keep:
            end = b"connection: close\r\n\r\n"
        else:
            end = b"connection: keep-alive\r\n\r\n" if call.old_client else b"\r\n"
        first = STATUS.get(status) or f"HTTP/1.1 {status} Other\r\n".encode()
        head = b"".join((first, front.lines, lines, call.lines, b"content-length: %d\r\n" % len(body), end))
        transport = self._transport
        if call.method == b"HEAD" or status in (204, 304):
            transport.write(head)
        elif len(body) <= _JOINED:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        self.asked.popleft()
        self.since = time.monotonic()
        if call.page is None:
            front.figures.add(status, self.since - call.arrived)
        if not keep:
            self._close()
        elif self.asked:
            front.loop.call_soon(self._next)
        elif self._paused:
            self._paused = False
            transport.resume_reading()

    def _next(self) -> None:
        if self.asked:
            self.front.begin(self.asked[0])

    def _close(self) -> None:
        if not self.lingering and not self.reading:
            self._transport.close()
            return
        # Somebody still sends: closing now would take the answer away from under them.
        self.lingering = True
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _refuse_connection(self, status: int, reason: str) -> None:
        """What comes cannot be understood, or cannot be taken: say so, in its turn, and be done with it."""
        call = Call(self, b"", b"", [])
        call.refused, call.keep_alive = (status, reason, b""), False
        self.lingering = True
        if not self._transport.is_closing():
            self._enqueue(call)

    def drop(self) -> None:
        self._transport.abort()

    def sweep(self, now: float) -> None:
        """Called every second: nobody holds a connection for nothing."""
        if self.stalled is not None and now - self.stalled > WRITE_SECONDS:
            self._transport.abort()
        elif self.asked:
            return
        elif self.lingering:
            if now - self.since > LINGER_SECONDS:
                self._transport.abort()
        elif self.reading:
            if now - self.since > self.front.about.limits.read_seconds + self._received / BODY_RATE:
                self._refuse_connection(408, "The request did not arrive in time.")
        else:
            idle = self.front.about.limits.read_seconds if self._fresh else IDLE_SECONDS
            if now - self.since > (self.front.drain_idle_seconds if self.front.draining else idle):
                self._transport.close()
