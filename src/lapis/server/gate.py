"""The one gate in front of every route: who asks, and may a request of this kind come in at all. Denies by default.

What those it lets in may do is the guard's to say: a route gets control with the guard in front of it.
"""

from __future__ import annotations

import hashlib
import json
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Receive, Scope, Send

from lapis.domain import http_head
from lapis.domain.limits import LOGIN_BODY
from lapis.errors import AuthenticationException, Forbidden, UserErrorException
from lapis.server.api.errors import Errors, more_headers
from lapis.server.api.request import ACTOR, CONTROL
from lapis.server.bodies import Bodies
from lapis.server.control.access import VIEWER, Actor
from lapis.server.control.guard import guarded
from lapis.server.studio.login import LOGIN_PAGE, LOGIN_PATH, PAGE_HEADERS
from lapis.server.system import System

_COOKIE_SECONDS = 30 * 24 * 3600  # so that links of notebooks go on working in a browser that had the key once


class Gate:
    """Lets in a bearer token, a signed link to one file, or a viewer's cookie for looking at pages. Nothing else."""

    def __init__(self, app: ASGIApp, system: System, host: str, errors: Errors) -> None:
        self._app = app
        self._errors = errors
        self._access, self._tokens, self._control = system.access, system.tokens, system.control
        self._hosts = http_head.own_names([host])
        self._bodies = Bodies()
        # browsers share cookies between the ports of an address: two homes must not log each other out
        self._cookie_name = "lapis_view_" + hashlib.sha256(system.home.encode()).hexdigest()[:12]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        self._control.lifetime.asked()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._check_host(headers.get("host", ""))
            if "\0" in scope["path"]:
                raise UserErrorException("The address of the request holds a null character.")
            if scope["path"] == LOGIN_PATH and scope["method"] == "POST":
                await self._log_in(receive, send)
                return
            actor = self._actor(scope, headers)
            receive, send, held = self._bodies.admit(scope, headers, receive, send)
        except Exception as error:
            wants_page = scope["path"].startswith("/studio") and scope["method"] == "GET"
            if isinstance(error, AuthenticationException) and not isinstance(error, Forbidden) and wants_page:
                await _answer(send, 401, LOGIN_PAGE.encode(), PAGE_HEADERS)
            else:
                status, body = self._errors.told(error, f"{scope['method']} {scope['path']}")
                await _answer(send, status, json.dumps(body).encode(), {**_JSON, **more_headers(error)})
            return
        scope[ACTOR], scope[CONTROL] = actor, guarded(self._control, actor)
        try:
            await self._app(scope, receive, send)
        finally:
            self._bodies.let_go(held)

    def _check_host(self, host: str) -> None:
        """A page of another origin that rebinds its name to this address still says its own name here."""
        if http_head.host_name(host) not in self._hosts:
            raise Forbidden(f"This server does not answer under the name {host[:100]!r}.")

    def _actor(self, scope: Scope, headers: dict[str, str]) -> Actor:
        access = self._access
        kind, _, token = headers.get("authorization", "").partition(" ")
        if token:
            if kind.lower() != "bearer":
                raise AuthenticationException("Only bearer tokens are understood: Authorization: Bearer <token>.")
            return self._tokens.admit(access.actor(token.strip()))
        if scope["method"] == "GET" and b"signature=" in scope["query_string"]:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            path = scope.get("raw_path", b"").decode("latin-1").split("?")[0] or scope["path"]
            expires, signature = (query.get(name, [""])[0] for name in ("expires", "signature"))
            access.check_link(path, expires, signature, self._control.lifetime.now())
            return VIEWER
        if scope["method"] == "GET" and scope["path"].startswith("/studio"):
            actor = access.actor(_cookie(headers.get("cookie", ""), self._cookie_name))
            return Actor("viewer") if actor.kind in ("viewer", "user") else self._tokens.admit(actor)
        return access.actor(None)

    async def _log_in(self, receive: Receive, send: Send) -> None:
        body = b""
        while len(body) <= LOGIN_BODY:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        key = body.decode("latin-1").strip()
        actor = self._access.actor(key)
        if actor.kind not in ("viewer", "user"):
            raise Forbidden("This key does not open pages.")
        # Lax: a click on a link in a notebook, which is another site, brings the cookie; it opens pages, and no more
        kept = f"Path=/studio; Max-Age={_COOKIE_SECONDS}; HttpOnly; SameSite=Lax"
        cookie = f"{self._cookie_name}={self._access.viewer_key}; {kept}"
        await _answer(send, 204, b"", {**_JSON, "set-cookie": cookie})


_JSON = {"content-type": "application/json", "x-content-type-options": "nosniff"}


def _cookie(text: str, name: str) -> str | None:
    try:
        morsel = SimpleCookie(text).get(name)
    except CookieError:
        return None
    return morsel.value if morsel is not None else None


async def _answer(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
