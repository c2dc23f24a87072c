"""One request on its way: what was asked, who waits for the answer, and that it is answered exactly once."""

from __future__ import annotations

from typing import Any, Protocol


class Waiting(Protocol):
    """Whoever waits for the answer of a call."""

    def answered(self, call: Call, status: int, lines: bytes, body: bytes) -> None: ...


class Call:
    """A request whose head has been read. `lines` are header lines that every answer to it carries."""

    __slots__ = (
        "method", "target", "path", "headers", "fields", "body", "size", "keep_alive", "old_client", "waiting", "lines",
        "arrived", "sent", "done", "page", "refused",
    )  # fmt: skip

    def __init__(self, waiting: Waiting, method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        self.waiting = waiting
        self.method = method
        self.target = target
        self.path = target.partition(b"?")[0]
        self.headers = headers  # names in lower case
        self.fields = dict(headers)
        self.body = b""
        self.size = 0  # bytes of the body that count against what the front may hold
        self.keep_alive = True
        self.old_client = False  # HTTP/1.0
        self.lines = b""
        self.arrived = 0.0
        self.sent = 0.0
        self.done = False
        self.page: Any = None  # what answers it, if that is not a worker
        self.refused: tuple[int, str, bytes] | None = None  # status, reason, header lines

    def answer(self, status: int, lines: bytes, body: bytes) -> None:
        """Whoever is later than the first changes nothing."""
        if not self.done:
            self.done = True
            self.waiting.answered(self, status, lines, body)

    def refuse(self, status: int, reason: str, lines: bytes = b"") -> None:
        self.answer(status, REFUSED + lines, message(reason))


JSON = b"content-type: application/json\r\n"
REFUSED = JSON + b"x-ms-run-function-failed: False\r\n"  # run() was not at fault
RETRY = b"retry-after: 1\r\n"


def message(text: str) -> bytes:
    import json

    return json.dumps({"message": text}).encode()
