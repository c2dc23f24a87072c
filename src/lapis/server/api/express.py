"""The calls that every run, every logged point and every snapshot goes through, without the framework's toll.

They are plain functions of bytes; routing, parameters and dependencies would cost more than the work itself
(docs/performance.md). Everything else goes on to the app. The gate has let in whoever comes here, and errors are
answered as everywhere.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lapis.server.api import runs, snapshots
from lapis.server.api.errors import Errors
from lapis.server.api.request import ACTOR, CONTROL

LANES: dict[str, tuple[int, Callable[..., bytes]]] = {
    "/api/v1/workspaces/{workspace_id}/runs/{run_id}/report": (200, runs.report_from),
    "/api/v1/workspaces/{workspace_id}/runs": (201, runs.create_from),
    "/api/v1/workspaces/{workspace_id}/snapshots": (200, snapshots.add_from),
    "/api/v1/blobs/missing": (200, snapshots.missing_from),
    "/api/v1/blobs": (201, snapshots.put_blobs_from),
}
"""What is posted where: the status of success, and the function, of guarded control, the path's names, the body."""

_PATTERNS = [(re.compile(re.sub("{[^/]+}", "([^/]+)", path)), *lane) for path, lane in LANES.items()]

_SMALL = 16 << 10  # bytes of a body whose work is not worth a thread
_SOON = 0.5  # seconds
_log = logging.getLogger("lapis.server")


class Express:
    def __init__(self, app: ASGIApp, busy: Callable[[], bool], settle: Callable[[], None], errors: Errors) -> None:
        self._app = app
        self._settle = settle  # waits until what was stored survives a power cut
        self._settles = False  # it is going to be
        self._busy = busy  # whether a write would have to wait for another one
        self._errors = errors
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="express")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lane = _lane(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if lane is None:
            changes = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD")
            await self._app(scope, receive, self._when_settled(scope, send) if changes else send)
            return
        body = await _read(receive)
        if body is None:
            return  # whoever sent it has gone: a part of a report is no report
        success, work, names = lane
        asked = (success, work, (scope[CONTROL], *names, body))
        light = scope[ACTOR].kind == "user" and len(body) <= _SMALL  # an agent's report may be its last
        light = light and b'"mpi"' not in body  # Open MPI may have to be installed first
        light = light and b'"verdict"' not in body  # the last report of a run seals logs and waits for the disk
        if light and not self._busy():
            status, answer = self._done(*asked)  # done in a millisecond: handing it to a thread would cost as much
        else:
            loop = asyncio.get_running_loop()
            status, answer = await loop.run_in_executor(self._threads, self._done, *asked)
        if work is runs.create_from:
            self._settle_soon()
        await _answer(send, status, answer)

    def _done(self, success: int, work: Callable[..., bytes], asked: tuple[Any, ...]) -> tuple[int, bytes]:
        try:
            return success, work(*asked)
        except Exception as error:
            status, body = self._errors.told(error, work.__name__.replace("_", " "))
            return status, json.dumps(body).encode()

    def _settle_soon(self) -> None:
        """A submit does not wait for the disk: it can be made again, and its script would end with the power anyway.

        Blobs and snapshots are nobody's yet, and a report that ends a run sees to it itself.
        """
        if not self._settles:
            self._settles = True
            asyncio.get_running_loop().call_later(_SOON, self._threads.submit, self._settle_now)

    def _settle_now(self) -> None:
        self._settles = False
        try:
            self._settle()
        except OSError:
            _log.exception("What was submitted is not on the disk yet; it is tried again with the next one")

    def _when_settled(self, scope: Scope, send: Send) -> Send:
        """What changed something is answered when that is on the disk; if it cannot get there, that is the answer."""
        refused = False

        async def settled_send(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                try:
                    await asyncio.get_running_loop().run_in_executor(self._threads, self._settle)
                except OSError as error:
                    refused = True
                    status, body = self._errors.told(error, f"{scope['method']} {scope['path']}")
                    await _answer(send, status, json.dumps(body).encode())
            if not refused:
                await send(message)

        return settled_send


def _lane(path: str) -> tuple[int, Callable[..., bytes], tuple[str, ...]] | None:
    for pattern, success, work in _PATTERNS:
        found = pattern.fullmatch(path)
        if found is not None:
            return success, work, found.groups()
    return None


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _read(receive: Receive) -> bytes | bytearray | None:
    body: bytes | bytearray = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        piece = message.get("body", b"")
        if not body:
            body = piece
        else:
            if isinstance(body, bytes):
                body = bytearray(body)  # grows in place: pieces that are kept to be joined would be new pages each time
            body += piece
        if not message.get("more_body"):
            return body
