"""Which function answers which request, and what it is given of it.

A route is a plain function, and its signature says what it needs: control, guarded for whoever asks; the request; the
names in its path; the body, as the value that it is declared as; all else stands in the query. docs/decisions/0035 says
why no framework does this.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from lapis.domain import limits, strict_json
from lapis.domain.values import Value
from lapis.errors import NotFound, UserErrorException
from lapis.server.api.errors import Errors, more_headers
from lapis.server.api.request import BODY, CONTROL, answer
from lapis.server.control.bounds import Bounds
from lapis.server.control.guard import Guarded

Endpoint = Callable[..., Any]
Around = Callable[[Request, Callable[[], Awaitable[Response]]], Awaitable[Response]]
_Reader = Callable[[Request, Any], Any]


class Route:
    """One function under one path. `{name}` is a part of the path, `{name:path}` all that is left of it."""

    def __init__(self, method: str, path: str, endpoint: Endpoint, around: Around | None) -> None:
        self.method, self.path, self.endpoint = method, path, endpoint
        self.names = [part[1:-1].partition(":")[0] for part in path.split("/") if part.startswith("{")]
        self._around = around
        self._readers: dict[str, _Reader] | None = None  # worked out when it is first asked for: there are many routes
        self._has_body = False

    async def answer(self, request: Request) -> Response:
        if self._around is None:
            return await self._answer(request)
        return await self._around(request, lambda: self._answer(request))

    async def _answer(self, request: Request) -> Response:
        if self._readers is None:
            self._readers = _readers(self.endpoint, self.names)
            self._has_body = any(isinstance(reader, _Body) for reader in self._readers.values())
        raw = await request.body() if self._has_body else b""
        body = strict_json.decode(raw) if raw else {}
        given = {name: read(request, body) for name, read in self._readers.items()}
        if inspect.iscoroutinefunction(self.endpoint):
            response: Response = await self.endpoint(**given)
            return response
        return await run_in_threadpool(self.endpoint, **given)


class Routes:
    """Those of one subject: `@routes.get("/{name}")` above a function makes it one. `around` is about each answer."""

    def __init__(self, prefix: str = "", around: Around | None = None) -> None:
        self._prefix, self._around = prefix, around
        self._listed: list[tuple[str, str, Endpoint]] = []

    def below(self, path: str) -> list[Route]:
        """All of them, as they stand below that path."""
        return [Route(method, path + own, endpoint, self._around) for method, own, endpoint in self._listed]

    def get(self, path: str) -> Callable[[Endpoint], Endpoint]:
        return self._route("GET", path)

    def post(self, path: str) -> Callable[[Endpoint], Endpoint]:
        return self._route("POST", path)

    def put(self, path: str) -> Callable[[Endpoint], Endpoint]:
        return self._route("PUT", path)

    def patch(self, path: str) -> Callable[[Endpoint], Endpoint]:
        return self._route("PATCH", path)

    def delete(self, path: str) -> Callable[[Endpoint], Endpoint]:
        return self._route("DELETE", path)

    def _route(self, method: str, path: str) -> Callable[[Endpoint], Endpoint]:
        def add(endpoint: Endpoint) -> Endpoint:
            self._listed.append((method, self._prefix + path, endpoint))
            return endpoint

        return add


class App:
    """All routes as one ASGI application. `start` is called before the first request, `stop` after the last."""

    def __init__(
        self, routes: Iterable[Route], errors: Errors, start: Callable[[], None], stop: Callable[[], None]
    ) -> None:
        self.routes = list(routes)
        self._errors, self._start, self._stop = errors, start, stop
        self._root = _Part()
        for route in self.routes:
            self._root.add(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Exception as error:
            status, body = self._errors.told(error, f"{scope['method']} {scope['path']}")
            response = answer(body, status)
            response.headers.update(more_headers(error))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path, method = request.scope["path"], request.scope["method"]
        found = self._root.find(path)
        if found is None:
            other = path[:-1] if path.endswith("/") else path + "/"
            if self._root.find(other) is None:
                raise NotFound(f"No route {method} {path}.")
            query = request.scope["query_string"].decode("latin-1")
            return RedirectResponse(quote(other) + (f"?{query}" if query else ""), 307)
        part, values = found
        route = part.routes.get(method)
        if route is None:
            refused = UserErrorException(f"{path} takes {' and '.join(sorted(part.routes))}, and no {method}.")
            refused.status = 405
            raise refused
        request.scope["path_params"] = dict(zip(route.names, values, strict=True))
        return await route.answer(request)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._stop()
        await send({"type": "lifespan.shutdown.complete"})


class _Part:
    """Where paths that begin alike go on: by a word, by any word, or by all that is left."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}  # of paths that end here, by method
        self._words: dict[str, _Part] = {}
        self._any: _Part | None = None
        self._rest: _Part | None = None

    def add(self, route: Route) -> None:
        part = self
        for word in route.path.split("/")[1:]:
            part = part._next(word)
        part.routes[route.method] = route

    def _next(self, word: str) -> _Part:
        if word.endswith(":path}"):
            self._rest = self._rest or _Part()
            return self._rest
        if word.startswith("{"):
            self._any = self._any or _Part()
            return self._any
        return self._words.setdefault(word, _Part())

    def find(self, path: str) -> tuple[_Part, list[str]] | None:
        """The part that a path ends at, and what stands in its names."""
        return self._find(path.split("/")[1:], 0)

    def _find(self, words: list[str], at: int) -> tuple[_Part, list[str]] | None:
        if at == len(words):
            return (self, []) if self.routes else None
        known = self._words.get(words[at])
        found = known._find(words, at + 1) if known is not None else None
        if found is None and self._any is not None and words[at]:
            found = self._any._find(words, at + 1)
            if found is not None:
                found[1].insert(0, words[at])
        if found is None and self._rest is not None:
            return self._rest, ["/".join(words[at:])]
        return found


# -- what a function is given


def _readers(endpoint: Endpoint, path_names: list[str]) -> dict[str, _Reader]:
    function = inspect.unwrap(endpoint)
    hints = get_type_hints(function, include_extras=True)
    return {
        name: _reader(name, hints[name], parameter.default, name in path_names)
        for name, parameter in inspect.signature(function).parameters.items()
    }


def _reader(name: str, kind: Any, default: Any, in_path: bool) -> _Reader:
    if kind is Guarded:
        return _control
    if kind is Request:
        return _request
    if in_path:
        read = _from_text(name, kind)
        return lambda request, _: read(request.scope["path_params"][name])
    if BODY in get_args(kind):
        return _Body(lambda body: body)
    if isinstance(kind, type) and issubclass(kind, Value):
        return _Body(lambda body: kind.checked(body, name))
    return _from_query(name, kind, default)


def _control(request: Request, body: Any) -> Any:
    return request.scope[CONTROL]


def _request(request: Request, body: Any) -> Any:
    return request


class _Body:
    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def __call__(self, request: Request, body: Any) -> Any:
        return self._read(body)


def _from_query(name: str, kind: Any, default: Any) -> _Reader:
    item, bounds = _plain(kind)
    many = get_origin(item) is list
    read = _from_text(name, get_args(item)[0] if many else kind)

    def found(request: Request, _: Any) -> Any:
        given = request.query_params.getlist(name)
        if not given:
            if default is inspect.Parameter.empty:
                raise UserErrorException(f"The request lacks '{name}' in its address.")
            return default
        if not many:
            return read(given[-1])
        limits.check_count(name, given, int(bounds.most) if bounds else limits.ITEMS)
        return [read(each) for each in given]

    return found


def _from_text(name: str, kind: Any) -> Callable[[str], Any]:
    """How a word of an address becomes what it stands for."""
    plain, bounds = _plain(kind)
    if plain is bool:
        return lambda text: _truth(name, text)
    if plain is str:
        return lambda text: limits.check_text(name, text, int(bounds.most) if bounds else limits.WORD)
    least, most = bounds or (-limits.WHOLE, limits.WHOLE)
    if plain is int:
        return lambda text: limits.check_whole(name, _number(name, int, text), int(least), int(most))
    assert plain is float, f"{name} of an address is {kind}"
    return lambda text: limits.check_number(name, _number(name, float, text), least, most)


def _plain(kind: Any) -> tuple[Any, Bounds | None]:
    """A type without its bounds and without None, and the bounds."""
    bounds = None
    while True:
        origin = get_origin(kind)
        if origin is Annotated:
            kind, bounds = get_args(kind)[:2]
        elif origin in (Union, types.UnionType):
            (kind,) = (each for each in get_args(kind) if each is not type(None))
        else:
            return kind, bounds


def _number(name: str, kind: Any, text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise UserErrorException(f"{name} must be {what}, not {limits.shown(text)}.") from None


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise UserErrorException(f"{name} must be true or false, not {limits.shown(text)}.")
    return text.lower() in ("true", "1")
