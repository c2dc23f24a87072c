"""Each change once: a request that comes again, because its reply was lost, gets the same answer and changes nothing.

A client gives every request that may change something an identity of its own, and keeps it when it asks again. The
answer is kept with it: where it can be, in the same transaction as the change, so that a server killed at any moment
has both or neither. Clients of earlier releases give no identity, and are answered as they were.
"""

from __future__ import annotations

import hmac
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lapis.errors import Conflict, UserErrorException, to_wire
from lapis.server.api.repeats import ASKED
from lapis.server.api.request import ACTOR
from lapis.server.control.access import Actor
from lapis.server.control.sealing import Sealing
from lapis.server.store.database import Database
from lapis.server.store.requests import Answered, RequestStore

HEADER = b"lapis-request"
_IDENTITY = re.compile(rb"[0-9A-Za-z-]{16,64}")
_WORKSPACE = re.compile("/api/v1/workspaces/([^/]+)")


class Once:
    """In front of the routes: takes the identity of a request that may change something, and a mark of what it asks."""

    def __init__(
        self,
        app: ASGIApp,
        database: Database,
        requests: RequestStore,
        sealing: Sealing,
        key: bytes,
        now: Callable[[], float],
    ) -> None:
        self._app = app
        self._database, self._requests, self._sealing = database, requests, sealing
        self._key = key  # for marks: what is asked may hold a password, which no plain hash of it should give away
        self._now = now
        self._turns = _Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        identity = dict(scope["headers"]).get(HEADER)
        if identity is not None and not _IDENTITY.fullmatch(identity):
            await _refuse(scope, receive, send)
            return
        mark = hmac.new(self._key, b"%s %s?%s\n" % (
            scope["method"].encode(), scope["path"].encode(), scope["query_string"]
        ), "sha256")  # fmt: skip

        async def marked() -> Message:
            message = await receive()
            mark.update(message.get("body", b""))
            return message

        # nothing is set back: the context is this request's own
        found = _WORKSPACE.match(scope["path"])
        whose = found[1] if found else None
        ASKED.set(_Asked(self, scope[ACTOR], whose, identity.decode() if identity else None, mark.hexdigest))
        await self._app(scope, marked, send)


class _Asked:
    """One request, as the decorators of routes see it."""

    def __init__(
        self, shared: Once, actor: Actor, workspace_id: str | None, identity: str | None, mark: Callable[[], str]
    ) -> None:
        self._database, self._requests, self._turns = shared._database, shared._requests, shared._turns
        self._sealing, self._now = shared._sealing, shared._now
        self._workspace_id = workspace_id
        self._actor = f"{actor.kind} {actor.workspace_id or ''} {actor.run_id or ''}"
        self._identity = identity
        self._mark = mark

    def in_one_transaction(self, work: Callable[[], Response]) -> Response:
        with self._database.write():
            return self._answer(work)

    def once(self, work: Callable[[], Response]) -> Response:
        """One that is asked again meanwhile waits for this answer."""
        if self._identity is None:
            return work()
        with self._turns.of((self._actor, self._identity)):
            return self._answer(work)

    def _answer(self, work: Callable[[], Response]) -> Response:
        if self._identity is None:
            return work()
        known = self._known(self._identity)
        if known is not None:
            return known
        answer = work()
        kept = self._with(bytes(answer.body), self._sealing.sealed)
        answered = Answered(self._mark(), answer.status_code, kept)
        self._requests.add(self._actor, self._identity, answered, self._now())
        return answer

    def _known(self, identity: str) -> Response | None:
        found = self._requests.find(self._actor, identity)
        if found is None:
            return None
        if found.mark != self._mark():
            raise Conflict(
                f"A request with the identity {identity} was made before, and asked for something else. Each request "
                "needs an identity of its own in the header Lapis-Request."
            )
        again = self._with(found.answer, self._sealing.opened)
        return Response(again, found.status, media_type="application/json")

    def _with(self, body: bytes, how: Callable[[str, Any], Any]) -> bytes:
        """An answer may hold what its asker alone may see: an address with its signature, say. It is kept sealed."""
        if self._workspace_id is None:
            return body
        return json.dumps(how(self._workspace_id, json.loads(body)), separators=(",", ":")).encode()


class _Turns:
    """A lock for each key that somebody has, or waits for."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[Any, tuple[threading.Lock, int]] = {}

    @contextmanager
    def of(self, key: Any) -> Iterator[None]:
        with self._guard:
            lock, users = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks[key]
                if users == 1:
                    del self._locks[key]
                else:
                    self._locks[key] = lock, users - 1


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    error = UserErrorException("The header Lapis-Request has to be 16 to 64 letters, digits and dashes.")
    answer = Response(json.dumps(to_wire(error)), error.status, media_type="application/json")
    await answer(scope, receive, send)
