"""The app as the server makes it, without a socket: whoever asks, anything may be asked of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest

from lapis.domain import settings
from lapis.server.app import make_app, make_system
from lapis.server.control.runs import NewRun
from lapis.server.control.workspaces import NewWorkspace
from lapis.server.gate import Gate
from lapis.server.system import System


class Reply(NamedTuple):
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def said(self) -> str:
        """Of an error."""
        return str(self.json["error"]["message"])


@dataclass
class Served:
    system: System
    app: Gate
    here: str  # the workspace of most of them
    elsewhere: str
    tokens: dict[str, str | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # what stands for the parameters of a path
    begun: int = 0

    def run_token(self, kind: str, workspace_id: str, run_id: str) -> str:
        return self.system.access.run_token(kind, workspace_id, run_id)

    def begin(self, workspace_id: str, run_id: str, **more: Any) -> str:
        self.system.control.runs.create(workspace_id, [NewRun("e", run_id, run_id, started=True, **more)])
        return run_id

    def begin_mine(self) -> str:
        """A fresh run for the tokens `mine` and `agent`."""
        self.begun += 1
        run_id = self.begin(self.here, f"mine-{self.begun}")
        self.names["run_id"] = run_id
        self.tokens["agent"] = self.run_token("agent", self.here, run_id)
        self.tokens["mine"] = self.run_token("run", self.here, run_id)
        return run_id

    def path(self, route: str) -> str:
        for name, value in self.names.items():
            route = route.replace(f"{{{name}}}", value).replace(f"{{{name}:path}}", value)
        return route

    def ask(self, who: str, method: str, route: str, body: Any = None, bearer: str | None = None) -> Reply:
        """`who` is one of `tokens`; `bearer` is sent in place of theirs."""
        path, _, query = self.path(route).partition("?")
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = {b"host": b"127.0.0.1", b"content-type": b"application/json"}
        token = bearer if bearer is not None else self.tokens[who]
        if token is not None:
            headers[b"authorization"] = f"Bearer {token}".encode("latin-1")
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "http_version": "1.1", "scheme": "http", "headers": list(headers.items()),
        }  # fmt: skip
        coming: list[dict[str, Any]] = [{"type": "http.request", "body": raw}]
        said: list[Any] = []

        async def receive() -> dict[str, Any]:
            return coming.pop() if coming else await asyncio.Event().wait() and {}

        async def send(message: Any) -> None:
            said.append(message)

        try:
            asyncio.run(self.app(scope, receive, send))
        except Exception:
            if not said:  # the framework answers an unforeseen fault, and raises it for the one who runs it
                raise
        return Reply(int(said[0]["status"]), b"".join(each.get("body", b"") for each in said[1:]))


def serve(home: str) -> Iterator[Served]:
    system = make_system(replace(settings.load(), home=home), "http://127.0.0.1:1", time.time, lambda: None)
    here, elsewhere = (system.control.workspaces.create(NewWorkspace(name))["id"] for name in ("here", "elsewhere"))
    made = Served(system, make_app(system, "127.0.0.1", lambda: None), here, elsewhere)
    for run_id in ("sibling", "goes-on"):
        made.begin(here, run_id)
    made.begin(elsewhere, "stranger")
    made.tokens = {
        "nobody": None,
        "wrong": "wrong" * 10,
        "viewer": system.access.viewer_key,
        "stranger": made.run_token("run", elsewhere, "stranger"),
        "sibling": made.run_token("run", here, "sibling"),
        "agent": None,
        "mine": None,
        "user": system.access.user_token,
    }
    names = {"workspace_id": here, "digest": "0" * 64, "lock": "0" * 32, "version": "1"}
    made.names = names | dict.fromkeys(("name", "rest", "experiment_id", "dataset_id", "snapshot_id"), "x")
    made.begin_mine()
    yield made
    system.stores.database.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a run in one workspace, two beside it, and one in another workspace."""
    yield from serve(str(tmp_path_factory.mktemp("home")))
