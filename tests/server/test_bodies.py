"""A body is as large as its route takes, and no larger: said before it is sent, or as soon as it is seen."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from lapis.domain import limits
from lapis.errors import Busy
from lapis.sdk.workspace.workspace import Workspace
from lapis.server.bodies import Bodies, most_of
from lapis.testing import Home
from tests.server.raw import answer, opened, said, status


def head(home: Home, method: str, path: str, *lines: str) -> bytes:
    token = (home.path / "token").read_text()
    first = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", "Connection: close"]
    return "\r\n".join([*first, *lines, "", ""]).encode()


def port_of(home: Home) -> int:
    return urlsplit(home.address).port or 0


def error_of(answered: bytes) -> str:
    return str(json.loads(answered.partition(b"\r\n\r\n")[2])["error"]["message"])


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(
    on_shared_server: Home, workspace: Workspace
) -> None:
    asked = head(on_shared_server, "POST", "/api/v1/workspaces", f"Content-Length: {500 << 20}")
    with closing(opened(port_of(on_shared_server), asked)) as connected:
        answered = connected.recv(65536)
    assert status(answered) == 413
    assert error_of(answered) == "The body of this request can be at most 16 MiB long."


@pytest.mark.parametrize("path", ["/api/v1/workspaces", "/api/v1/workspaces/{}/computes"])
def test_a_body_in_chunks_is_refused_when_it_is_too_large(
    path: str, on_shared_server: Home, workspace: Workspace
) -> None:
    asked = head(on_shared_server, "POST", path.format(workspace._workspace_id), "Transfer-Encoding: chunked")
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    answered = said(port_of(on_shared_server), asked + chunk * 17)
    assert status(answered) == 413 and "16 MiB" in error_of(answered)
    assert answered.count(b"HTTP/1.1") == 1


def test_a_compressed_body_is_refused(on_shared_server: Home, workspace: Workspace) -> None:
    asked = head(on_shared_server, "POST", "/api/v1/workspaces", "Content-Encoding: gzip", "Content-Length: 0")
    assert "cannot be compressed" in error_of(said(port_of(on_shared_server), asked))


def test_a_file_goes_to_the_disk_as_it_comes_however_large_it_is() -> None:
    assert most_of("PUT", "/api/v1/blobs/ab") is None
    assert most_of("PUT", "/api/v1/workspaces/w/runs/r/files/outputs/model.pt") is None
    assert most_of("POST", "/api/v1/blobs") == limits.BATCH_BODY
    assert most_of("PATCH", "/api/v1/workspaces/w/runs/r") == limits.JSON_BODY


def test_all_bodies_together_are_bounded_and_small_ones_always_come_in() -> None:
    bodies = Bodies(held=3 << 20)

    def held(size: int) -> int:
        scope = {"method": "POST", "path": "/api/v1/blobs"}
        return bodies.admit(scope, {"content-length": str(size)}, None, None)[2]  # type: ignore[arg-type]

    large = held(2 << 20)
    with pytest.raises(Busy):
        held(2 << 20)
    assert held(1000) == 0
    bodies.let_go(large)
    assert held(2 << 20) == 2 << 20


def test_nothing_is_read_after_a_body_was_refused() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b" " * (9 << 20), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    async def read() -> list[str]:
        scope = {"method": "POST", "path": "/api/v1/workspaces"}
        counted, answer_by, _ = Bodies().admit(scope, {"transfer-encoding": "chunked"}, receive, send)
        read = [(await counted())["type"] for _ in range(3)]
        await answer_by({"type": "http.response.start", "status": 400, "headers": []})
        return read

    assert asyncio.run(read()) == ["http.request", "http.disconnect", "http.disconnect"]
    assert [each.get("status") for each in sent] == [413, None]


def test_whoever_sends_all_of_a_refused_body_hears_why(on_shared_server: Home, workspace: Workspace) -> None:
    asked = head(on_shared_server, "POST", "/api/v1/workspaces", f"Content-Length: {17 << 20}")
    with closing(opened(port_of(on_shared_server), asked.replace(b"Connection: close\r\n", b""))) as connected:
        connected.sendall(bytes(17 << 20))
        assert status(connected.recv(65536)) == 413
        connected.sendall(head(on_shared_server, "GET", "/api/v1/about"))
        assert status(answer(connected)) == 200
