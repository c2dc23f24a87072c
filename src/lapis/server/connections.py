"""The server's connections: each has its time and its size, and there are never more than the machine can hold.

uvicorn has no bound on a head, on how long one takes to come, or on how slowly a body does. A watch looks at every
connection once a second. Where all are taken, the one that has been open the longest without a question makes room.
"""

from __future__ import annotations

import asyncio
import json
import resource
from dataclasses import dataclass, field
from typing import Any

from lapis.domain import limits
from lapis.domain.http_head import head_fault, overhead_fault
from lapis.errors import UserErrorException, to_wire
from lapis.server.joined_writes import JoinedWritesProtocol

_STATUS = {400: "Bad Request", 408: "Request Timeout", 414: "URI Too Long", 431: "Request Header Fields Too Large",
           503: "Service Unavailable"}  # fmt: skip


def _most_connections() -> int:
    """Half of what may be open: the other half is for blobs, logs, databases and processes."""
    return max(64, min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))


@dataclass(frozen=True)
class ConnectionLimits:
    head_seconds: float = limits.HEAD_SECONDS
    body_seconds: float = limits.BODY_SECONDS
    body_rate: int = limits.BODY_RATE
    take_seconds: float = limits.TAKE_SECONDS
    linger_seconds: float = (
        10.0  # in which the rest of a refused body is read and forgotten, so that the answer is heard
    )
    look_every: float = 1.0  # seconds
    most: int = field(default_factory=_most_connections)


class BoundedProtocol(JoinedWritesProtocol):
    """One connection. `bounded(limits)` makes the class of a server's own limits."""

    limits = ConnectionLimits()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._in_head = True  # nothing has come yet, or a head has begun to
        self._in_body = False
        self._waited = 0.0  # seconds for what is to come, without those in which we did not read
        self._stalled = 0.0  # seconds in which the client took nothing of its answer
        self._received = self._body_received = 0  # bytes of this request
        self._refused = False

    # -- asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > self.limits.most and not self._make_room():
            self.refuse(503, "The server has as many connections as it can hold. Try again in a moment.")

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._received += len(data)
        if self.idle and not self._in_body:
            self._in_head = True  # empty lines before a request count as its head
        super().data_received(data)
        if self._refused or self.transport.is_closing():
            return
        if not self._in_body and self._received > limits.HTTP_HEAD:
            self.refuse(431, f"The header is longer than {limits.HTTP_HEAD} bytes.")
        elif self._in_body:
            fault = overhead_fault(self._received, self._body_received)
            if fault is not None:
                self.refuse(*fault)

    # -- httptools

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._in_body, self._waited = True, False, 0.0

    def on_headers_complete(self) -> None:
        fault = head_fault(self.url, self.headers, self.parser.get_http_version() == "1.0")
        if self._refused or fault is not None:
            self.refuse(*(fault or (400, "")))
            return
        self._in_head, self._in_body, self._waited = False, True, 0.0
        self._body_received = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_received += len(body)
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._waited, self._received = False, 0.0, 0
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waited = 0.0

    # -- the watch

    @property
    def idle(self) -> bool:
        """Whether it could go without anybody missing an answer."""
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def look(self, seconds: float) -> None:
        """So many seconds have passed: nobody holds a connection for nothing."""
        own = self.limits
        self._stalled = self._stalled + seconds if self.flow.write_paused else 0.0
        self._waited += 0.0 if self.flow.read_paused else seconds  # it is not the client who is slow
        if self._stalled > own.take_seconds:
            self.transport.abort()
        elif self._in_head and self.idle and self._waited > own.head_seconds:
            self.refuse(408, f"The head of the request did not come within {own.head_seconds:g} s.")
        elif self._in_body and self.cycle.response_complete and self._waited > own.linger_seconds:
            self.transport.abort()
        elif self._in_body and self._waited > own.body_seconds + self._body_received / own.body_rate:
            self.refuse(408, f"The body comes at less than {own.body_rate} bytes in a second.")

    def refuse(self, status: int, reason: str) -> None:
        """Say so if nothing was said yet, and be done with it."""
        if self._refused:
            return
        self._refused = True
        if (self.idle or not self.cycle.response_started) and not self.transport.is_closing():
            body = json.dumps(to_wire(UserErrorException(reason))).encode()
            head = f"HTTP/1.1 {status} {_STATUS[status]}\r\ncontent-type: application/json\r\n"
            retry = "retry-after: 1\r\n" if status == 503 else ""
            end = f"{retry}content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write((head + end).encode() + body)
        self.transport.close()

    def _watch(self) -> None:
        """Begun by the first connection; ends when there is none, so that an idle server sleeps."""
        state: Any = self.server_state
        if getattr(state, "lapis_watch", None) is not None:
            return
        every = self.limits.look_every

        def look() -> None:
            for each in list(state.connections):
                if isinstance(each, BoundedProtocol):
                    each.look(every)
            state.lapis_watch = self.loop.call_later(every, look) if state.connections else None

        state.lapis_watch = self.loop.call_later(every, look)

    def _make_room(self) -> bool:
        """Let go of the connection that has been silent the longest."""
        others = [each for each in self.connections if each is not self and isinstance(each, BoundedProtocol)]
        silent = [each for each in others if each.idle and not each.transport.is_closing()]
        if not silent:
            return False
        chosen = max(silent, key=lambda each: each._waited)
        self.connections.discard(chosen)
        chosen.transport.abort()
        return True


def bounded(own: ConnectionLimits) -> type[BoundedProtocol]:
    return type("BoundedProtocol", (BoundedProtocol,), {"limits": own})
