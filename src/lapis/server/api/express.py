"""The two calls that every run and every logged point goes through, without the framework's toll.

Making a run and reporting on one are plain functions of bytes; routing, parameters and dependencies would cost more
than the work itself (docs/performance.md). Everything else, and these calls for whoever asks otherwise, goes on to
the app. The gate has let in whoever comes here, and errors are answered as everywhere.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor

from starlette.types import ASGIApp, Receive, Scope, Send

from lapis.errors import AzureMLException, ServiceException, to_wire
from lapis.server.api import runs
from lapis.server.api.system import System
from lapis.server.control.access import Actor

_PATH = re.compile(r"^/api/v1/workspaces/([^/]+)/runs(?:/([^/]+)/report)?$")
_SMALL = 16 << 10  # bytes of a body whose work is not worth a thread
_log = logging.getLogger("lapis.server")


class Express:
    def __init__(self, app: ASGIApp, system: System) -> None:
        self._app = app
        self._system = system
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="express")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = _PATH.match(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        body = await _read(receive)
        if body is None:
            return  # whoever sent it has gone: a part of a report is no report
        asked = (scope["lapis_actor"], found[1], found[2], body)
        light = asked[0].kind == "user" and len(body) <= _SMALL  # an agent's last report seals logs of any size
        if light and not self._system.shelf.database.busy:
            status, answer = self._handle(*asked)  # done in a millisecond: handing it to a thread would cost as much
        else:
            loop = asyncio.get_running_loop()
            status, answer = await loop.run_in_executor(self._threads, self._handle, *asked)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _handle(self, actor: Actor, workspace_id: str, run_id: str | None, body: bytes) -> tuple[int, bytes]:
        try:
            if run_id is None:
                return 201, runs.create_from(self._system, actor, workspace_id, body)
            return 200, runs.report_from(self._system, actor, workspace_id, run_id, body)
        except AzureMLException as error:
            return error.status, json.dumps(to_wire(error)).encode()
        except Exception as error:
            _log.exception("POST of %s failed", run_id or "runs")
            return 500, json.dumps(to_wire(ServiceException(f"The server failed: {error!r}"))).encode()


async def _read(receive: Receive) -> bytes | None:
    pieces = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces) if len(pieces) > 1 else pieces[0]
