"""Thousands of hostile requests, to every route, with every kind of token: none is a fault of the server."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
import pytest

from azureml.core import Experiment, Workspace
from lapis.server.control.access import Access
from lapis.testing import Home
from tests.security.mutations import mutated
from tests.security.recorded import Asked, recording, session
from tests.server.test_permissions import ROUTES

PATIENCE = 30  # seconds for one answer
MEMORY = 600 << 20
TELLING = re.compile(r"Traceback|sqlite|SELECT |INSERT |\blapis\.[a-z]+\.[a-z]|Error\(|Exception\(|object at 0x")
KINDS = ("user", "user", "user", "run", "agent", "stranger", "viewer", "wrong", "nobody", "odd")


class Prey(NamedTuple):
    """A server with a workspace that is shot at and one that must not notice."""

    home: Home
    fuzzed: Workspace
    untouched: Workspace
    elsewhere: Workspace
    corpus: list[Asked]

    def tokens(self) -> dict[str, str | None]:
        """Of runs that are under way: what was shot at may have ended those of before."""
        access = Access(str(self.home.path))
        mine = Experiment(self.fuzzed, "prey").start_logging(snapshot_directory=None)
        theirs = Experiment(self.elsewhere, "prey").start_logging(snapshot_directory=None)
        return {
            "user": access.user_token,
            "viewer": access.viewer_key,
            "run": access.run_token("run", self.fuzzed._workspace_id, mine.id),
            "agent": access.run_token("agent", self.fuzzed._workspace_id, mine.id),
            "stranger": access.run_token("run", self.elsewhere._workspace_id, theirs.id),
            "wrong": "lapis.W10.0000",
            "odd": "\u00e9\u00ff",
            "nobody": None,
        }


@pytest.fixture
def prey(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prey:
    monkeypatch.chdir(tmp_path)
    fuzzed, untouched, elsewhere = (home.workspace(name) for name in ("fuzzed", "untouched", "elsewhere"))
    with recording() as corpus:
        session(fuzzed, tmp_path)
    run = Experiment(untouched, "e").start_logging(snapshot_directory=None)
    run.log("kept", 1)
    run.complete()
    return Prey(home, fuzzed, untouched, elsewhere, [*corpus, *_every_route(fuzzed, corpus)])


def _every_route(workspace: Workspace, corpus: list[Asked]) -> Iterator[Asked]:
    """Those that no client of the session used too, with names of things that are there."""
    runs = re.findall(r"/runs/([^/\s]+)/report", " ".join(asked.path for asked in corpus))
    names = {"workspace_id": workspace._workspace_id, "run_id": runs[-1], "name": "model", "version": "1"}
    for (method, route), (_, body) in ROUTES.items():
        path, _, query = route.partition("?")
        path = re.sub(r"{(\w+)(:path)?}", lambda found: names.get(found[1], "0" * 64), path)
        pairs = tuple((name, value) for name, _, value in (each.partition("=") for each in query.split("&") if each))
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        yield Asked(method, path, pairs, raw)


def _spared(who: str, method: str, target: str) -> bool:
    """What would end the hunt, if the user asks for it: to stop the server, or to remove what is shot at."""
    path = urlsplit(target).path
    ends = path == "/api/v1/stop" or (method == "DELETE" and re.fullmatch(r"/api/v1/workspaces/[^/]+", path))
    return who == "user" and bool(ends)


class Gun:
    """Sends bytes as they are: a client of ours would refuse to."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 0)
        self._socket: socket.socket | None = None

    def shoot(self, method: str, target: str, token: str | None, body: bytes) -> tuple[int, bytes]:
        for attempt in (1, 2):  # a kept connection may have been closed by the server after the last shot
            if self._socket is None:
                self._socket = socket.create_connection(self._address, PATIENCE)
            lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{self._address[1]}",
                     "Content-Type: application/json", f"Content-Length: {len(body)}"]  # fmt: skip
            if token is not None:
                lines.append(f"Authorization: Bearer {token}")
            try:
                self._socket.sendall("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass") + body)
                answer = http.client.HTTPResponse(self._socket, method=method)
                answer.begin()
                said = answer.read()
                if answer.will_close:
                    self.close()
                return answer.status, said
            except (ConnectionError, http.client.HTTPException):
                self.close()
                if attempt == 2:
                    raise
        raise AssertionError("two attempts are all there are")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _hunt(prey: Prey, requests: int) -> None:
    """Shoot, and look afterwards whether anything fell that should stand."""
    seed = int(os.environ.get("FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
    print(f"FUZZ_SEED={seed}")
    before, pid = _kept(prey), prey.home.server_pid
    assert pid is not None
    statuses, faults = _shots(prey, random.Random(seed), requests)
    print(f"{sum(statuses.values())} requests answered: {dict(sorted(statuses.items()))}")
    assert not faults, f"{len(faults)} faults with FUZZ_SEED={seed}. Of them:\n" + "\n\n".join(faults[:10])
    assert prey.home.server_pid == pid, "the server was replaced"
    assert _kept(prey) == before
    assert psutil.Process(pid).memory_info().rss < MEMORY


def _shots(prey: Prey, chance: random.Random, requests: int) -> tuple[Counter[int], list[str]]:
    statuses, faults = Counter[int](), []
    tokens: dict[str, str | None] = {}
    with closing(Gun(prey.home.address)) as gun:
        for number in range(requests):
            if number % 50 == 0:
                tokens = prey.tokens()
            method, target, body = mutated(chance.choice(prey.corpus), chance)
            who = chance.choice(KINDS)
            if _spared(who, method, target):
                continue
            status, said = gun.shoot(method, target, tokens[who], body)
            statuses[status] += 1
            fault = _fault(who, status, said.decode("utf-8", "replace"), prey)
            if fault:
                faults.append(f"{fault}: {method} {target[:300]} as {who}: {body[:300]!r}\n{status} {said[:500]!r}")
    return statuses, faults


def _fault(who: str, status: int, said: str, prey: Prey) -> str:
    """What is wrong with an answer. An error tells neither where the server keeps its things nor how it is made."""
    if status >= 500:
        return "A fault of the server"
    if who in ("nobody", "wrong", "odd") and status < 400:
        return "Let in without a token"
    if status < 400:
        return ""
    if str(prey.home.path) in said or (prey.home.path / "token").read_text() in said:
        return "Tells of the home"
    return "Tells how it is made" if TELLING.search(said) else ""


def _kept(prey: Prey) -> Any:
    """What must be the same after the hunt."""
    runs = list(Experiment(prey.untouched, "e").get_runs())
    told = [(run.id, run.get_status(), run.get_metrics(), run.get_file_names()) for run in runs]
    return (
        told,
        (prey.home.path / "token").read_bytes(),
        sorted(prey.untouched.datastores),
        prey.untouched.compute_targets,
    )


def test_no_hostile_request_is_a_fault_of_the_server(prey: Prey) -> None:
    _hunt(prey, 1_000)


@pytest.mark.full
def test_no_hostile_request_of_very_many_is_a_fault_of_the_server(prey: Prey) -> None:
    _hunt(prey, 10_000)
