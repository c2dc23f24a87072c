"""Long work has threads of its own: what is quick stays quick, and what is too much is told to come again."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.errors import Busy, UserErrorException
from lapis.server.api.long_work import Lane
from lapis.testing import Home
from tests.server.raw import opened, said, status
from tests.server.test_bodies import head, port_of


def test_only_so_much_is_done_at_once_only_so_much_waits_and_the_next_is_told_to_come_again() -> None:
    go, at_work, done = threading.Event(), [], []
    lane = Lane("testing", at_once=2, waiting=1)

    def work(number: int) -> None:
        at_work.append(number)
        go.wait(20)
        done.append(number)

    async def all_of_it() -> None:
        asked = [asyncio.ensure_future(lane.do(work, number)) for number in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="testing, 2 at once, and 1 more wait"):
            await lane.do(work, 3)
        while len(at_work) < 2:
            await asyncio.sleep(0.01)
        assert len(at_work) == 2
        go.set()
        await asyncio.gather(*asked)
        await lane.do(work, 4)

    asyncio.run(all_of_it())
    assert sorted(done) == [0, 1, 2, 4]


@pytest.fixture
def silent_index() -> Iterator[socket.socket]:
    """An index of packages that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as index:
        index.settimeout(30)
        yield index


def definition(index: socket.socket) -> dict[str, Any]:
    pip = {"pip": [f"--index-url http://127.0.0.1:{index.getsockname()[1]}/simple", "never-heard-of"]}
    return {"name": "hangs", "python": {"condaDependencies": {"dependencies": [pip]}}}


def test_a_list_is_answered_while_more_resolves_hang_than_there_are_threads(
    home: Home, silent_index: socket.socket
) -> None:
    workspace = home.workspace()
    body = json.dumps({"definition": definition(silent_index)}).encode()
    path = f"/api/v1{workspace._base}/environments/resolve"
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    with ExitStack() as open_ones:
        hanging = [opened(port_of(home), head(home, "POST", path, *lines) + body) for _ in range(42)]
        for each in hanging:
            open_ones.enter_context(each)
        open_ones.enter_context(silent_index.accept()[0])
        listed = said(port_of(home), head(home, "GET", f"/api/v1{workspace._base}/runs"))
        assert status(listed) == 200
        assert not select.select(hanging, [], [], 0)[0], "none of them was answered before"
        home.kill_server()


def test_resolving_has_a_limit_and_says_so(tmp_path: Any, silent_index: socket.socket) -> None:
    builds = EnvironmentBuilds(str(tmp_path / "environments"), lambda: None, seconds=0.5)
    with pytest.raises(UserErrorException, match="'hangs' could not be resolved within 0.5 s"):
        builds.resolve(definition(silent_index), strict=False)
