"""Which function answers a request, and what it is given of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from lapis.domain.values import Value
from lapis.server.api.errors import Errors
from lapis.server.api.request import Asked, Request, Response, TheControl, answer
from lapis.server.api.routing import App, Routes
from lapis.server.control.bounds import Filters, Offset, Seconds, Version

routes = Routes("/things")


@dataclass(frozen=True)
class Wish(Value):
    name: str
    count: int = 1


@routes.get("")
def find(
    tag: Filters | None = None, limit: Offset = 7, wait: Seconds = 0.0, archived: bool | None = False, name: str = "-"
) -> Response:
    return answer([tag, limit, wait, archived, name])


@routes.post("")
def make(control: TheControl, wish: Wish) -> Response:
    return answer([str(control), wish.name, wish.count], 201)


@routes.patch("/{name}")
async def change(request: Request, name: str, changes: Asked) -> Response:
    return answer([request.method, name, changes])


@routes.get("/builds/{lock}")
def build(lock: str) -> Response:
    return answer(["build", lock])


@routes.get("/{name}")
def get(name: str, need: str) -> Response:
    return answer(["thing", name, need])


@routes.get("/{name}/{version}")
def get_version(name: str, version: Version) -> Response:
    return answer(["version", name, version])


@routes.get("/{name}/files/{path:path}")
def file(name: str, path: str) -> Response:
    return answer(["file", name, path])


@routes.get("/pages/")
def page() -> Response:
    return answer("page")


def ask(method: str, target: str, body: Any = None) -> tuple[int, Any]:
    app = App(routes.below("/api"), Errors("/nowhere"), lambda: None, lambda: None)
    path, _, query = target.partition("?")
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": [],
             "lapis_control": "control"}  # fmt: skip
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    said: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(app(scope, receive, send))
    content = b"".join(message.get("body", b"") for message in said)
    if said[0]["status"] == 307:
        return 307, dict(said[0]["headers"])[b"location"].decode()
    return said[0]["status"], json.loads(content)


@pytest.mark.parametrize(
    ("method", "target", "answered"),
    [
        ("GET", "/api/things", [None, 7, 0.0, False, "-"]),
        ("GET", "/api/things?tag=a&tag=b&limit=3&wait=1.5&archived=true&name=x%20y", [["a", "b"], 3, 1.5, True, "x y"]),
        ("GET", "/api/things/one?need=it", ["thing", "one", "it"]),
        ("GET", "/api/things/builds/x", ["build", "x"]),
        ("GET", "/api/things/builds?need=it", ["thing", "builds", "it"]),
        ("GET", "/api/things/one/2", ["version", "one", 2]),
        ("GET", "/api/things/one/files/a/b.txt", ["file", "one", "a/b.txt"]),
        ("GET", "/api/things/builds/files/a", ["file", "builds", "a"]),
    ],
)
def test_a_word_comes_before_a_name_and_a_name_before_the_rest(method: str, target: str, answered: Any) -> None:
    assert ask(method, target) == (200, answered)


def test_a_body_is_read_as_the_value_that_it_is_declared_as() -> None:
    assert ask("POST", "/api/things", {"name": "n", "count": 3}) == (201, ["control", "n", 3])
    assert ask("PATCH", "/api/things/one", [1, {"a": None}]) == (200, ["PATCH", "one", [1, {"a": None}]])


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "said"),
    [
        ("GET", "/api/nothing", None, 404, "No route GET /api/nothing"),
        ("GET", "/api/things//files/a", None, 404, "No route"),
        ("DELETE", "/api/things", None, 405, "takes GET and POST, and no DELETE"),
        ("GET", "/api/things/one", None, 400, "lacks 'need'"),
        ("GET", "/api/things?limit=x", None, 400, "limit must be a whole number, not 'x'"),
        ("GET", "/api/things?limit=-1", None, 400, "limit must be between 0 and"),
        ("GET", "/api/things?wait=nan", None, 400, "wait must be between"),
        ("GET", "/api/things?archived=perhaps", None, 400, "archived must be true or false"),
        ("GET", "/api/things/one/two", None, 400, "version must be a whole number"),
        ("GET", "/api/things?" + "&".join(["tag=t"] * 101), None, 400, "tag can hold at most 100"),
        ("POST", "/api/things", {}, 400, "wish lacks the field 'name'"),
        ("POST", "/api/things", {"name": "n", "colour": "red"}, 400, "wish has no field 'colour'"),
        ("POST", "/api/things", {"name": 7}, 400, "wish.name must be text, not 7"),
        ("POST", "/api/things", b"{", 400, "cannot be read"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(method: str, target: str, body: Any, status: int, said: str) -> None:
    refused = ask(method, target, body)
    assert refused[0] == status
    assert said in refused[1]["error"]["message"]


def test_an_address_that_only_lacks_its_last_slash_leads_on() -> None:
    assert ask("GET", "/api/things/") == (307, "/api/things")
    assert ask("GET", "/api/things/pages/") == (200, "page")
