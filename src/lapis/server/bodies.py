"""How large the body of a request may be: by its route, and all that are in memory together."""

from __future__ import annotations

import json

from starlette.types import Message, Receive, Scope, Send

from lapis.domain import limits
from lapis.errors import Busy, TooLarge, UserErrorException, to_wire

_UNNOTICED = 1 << 20  # bytes of a body that never has to wait for others
_MANY_AT_ONCE = ("/report", "/runs", "/snapshots", "/blobs", "/missing", "/files", "/datasets", "/models", "/profiles")


def most_of(method: str, path: str) -> int | None:
    """Bytes that the body of a request may have; None: it goes to the disk as it comes, and that is its bound."""
    if method == "PUT" and (path.startswith("/api/v1/blobs/") or "/files/" in path):
        return None
    return limits.BATCH_BODY if method == "POST" and path.endswith(_MANY_AT_ONCE) else limits.JSON_BODY


class Bodies:
    def __init__(self, held: int = limits.BODIES_HELD) -> None:
        self._most_held = held
        self._held = 0

    def admit(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> tuple[Receive, Send, int]:
        """What to receive the body and to answer by, and what is to be let go of when that is done.

        Raises before any of it was read if that can be told by then.
        """
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return receive, send, 0
        if headers.get("content-encoding", "identity") != "identity":
            raise UserErrorException("A body cannot be compressed: send it as it is, without Content-Encoding.")
        most = most_of(scope["method"], scope["path"])
        if most is None:
            return receive, send, 0
        if "transfer-encoding" in headers:
            counted = _Counted(receive, send, most)
            return counted.receive, counted.send, self._hold(most)
        announced = int(headers["content-length"])
        if announced > most:
            raise limits.too_large("The body of this request", most)
        return receive, send, self._hold(announced)  # the parser takes no more than was announced

    def _hold(self, size: int) -> int:
        if size <= _UNNOTICED:
            return 0
        if self._held + size > self._most_held:
            raise Busy("The server holds as many bytes of requests as it may. Try again in a moment.")
        self._held += size
        return size

    def let_go(self, size: int) -> None:
        self._held -= size


class _Counted:
    """A body of which nobody said how long it is. One that is too long is refused, and whoever reads it is told that
    the sender has gone."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive, self._send, self._most = receive, send, most
        self._came, self._refused = 0, False

    async def receive(self) -> Message:
        message = await self._receive()
        self._came += len(message.get("body", b""))
        if self._came <= self._most:
            return message
        if not self._refused:
            self._refused = True
            await self._refuse(limits.too_large("The body of this request", self._most))
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self._refused:
            await self._send(message)

    async def _refuse(self, error: TooLarge) -> None:
        body = json.dumps(to_wire(error)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self._send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})
