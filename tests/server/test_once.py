"""Every request that changes something counts once, and whatever a route changes is whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from lapis.domain import settings
from lapis.errors import UserErrorException
from lapis.server.api.express import LANES
from lapis.server.app import make_app, make_system
from lapis.server.control.access import USER
from lapis.server.control.sealing import Sealing
from lapis.server.control.stores import open_stores
from lapis.server.once import Once, _Asked
from lapis.server.store.requests import KEPT, KEPT_SECONDS, Answered
from lapis.testing import until

# Asked again without harm, for what they carry themselves.
BY_DESIGN = {
    "/api/v1/workspaces/{workspace_id}/runs/{run_id}/report": "positions: what was taken before changes nothing",
    "/api/v1/workspaces/{workspace_id}/runs": "a nonce made by the client: the same create again is the same run",
    "/api/v1/workspaces/{workspace_id}/snapshots": "a snapshot is its content",
    "/api/v1/blobs/missing": "it only tells",
    "/api/v1/blobs": "a blob is its content",
}


def test_every_route_that_changes_something_says_what_becomes_of_it_when_it_comes_again(tmp_path: Path) -> None:
    system = make_system(replace(settings.load(), home=str(tmp_path)), "http://127.0.0.1:1", time.time, lambda: None)
    app: Any = make_app(system, "127.0.0.1", lambda: None)
    silent = []
    while not hasattr(app, "routes"):
        app = app._app
    for route in app.routes:
        said = getattr(route.endpoint, "repeated", "")
        if route.method != "GET" and said not in ("whole", "kept") and not said.startswith("harmless: "):
            silent.append(route.path)
    assert not silent
    assert set(LANES) == set(BY_DESIGN)
    system.stores.database.close()


@pytest.fixture
def once(tmp_path: Path) -> Iterator[Once]:
    stores = open_stores(str(tmp_path))
    sealing = Sealing(stores, str(tmp_path))
    yield Once(lambda *_: None, stores.database, stores.requests, sealing, b"key", time.time)  # type: ignore[arg-type, return-value]
    stores.database.close()


def asked(once: Once, identity: str | None = "a" * 16, mark: str = "m") -> _Asked:
    return _Asked(once, USER, None, identity, lambda: mark)


def test_the_answer_and_the_change_are_one_transaction(once: Once) -> None:
    def half_done() -> Response:
        once._requests.add("somebody", "b" * 16, Answered("m", 200, b"{}"), 1.0)
        raise UserErrorException("no")

    with pytest.raises(UserErrorException):
        asked(once).in_one_transaction(half_done)
    assert once._requests.find("somebody", "b" * 16) is None
    assert asked(once).in_one_transaction(lambda: Response(b"done")).body == b"done"  # an error is not kept
    assert asked(once).in_one_transaction(half_done).body == b"done"


def test_a_request_that_comes_again_while_it_is_answered_waits_for_that_answer(once: Once) -> None:
    begun, go_on, answers = threading.Event(), threading.Event(), []

    def slow() -> Response:
        begun.set()
        go_on.wait()
        return Response(b"slow")

    def never() -> Response:
        raise AssertionError("done twice")

    first = threading.Thread(target=lambda: answers.append(asked(once).once(slow).body))
    first.start()
    begun.wait()
    second = threading.Thread(target=lambda: answers.append(asked(once).once(never).body))
    second.start()
    until(lambda: [users for _, users in once._turns._locks.values()] == [2])
    go_on.set()
    first.join()
    second.join()
    assert answers == [b"slow", b"slow"] and not once._turns._locks


def test_without_an_identity_a_request_counts_each_time(once: Once) -> None:
    answers = [asked(once, None).once(lambda n=n: Response(str(n))).body for n in range(2)]  # type: ignore[misc]
    assert answers == [b"0", b"1"]


def test_answers_are_kept_for_a_day_and_not_for_ever(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEPT >= 1000 and KEPT_SECONDS >= 3600
    monkeypatch.setattr("lapis.server.store.requests.KEPT", 2)
    for number in range(5):
        once._requests.add("u", f"r{number}", Answered("m", 200, b"{}"), float(number))
    assert once._requests.find("u", "r0") is not None  # many, but young
    once._requests.add("u", "late", Answered("m", 200, b"{}"), KEPT_SECONDS + 10)
    assert [once._requests.find("u", f"r{number}") is None for number in range(5)] == [True, True, True, True, False]
