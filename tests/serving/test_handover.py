"""A revision takes the place of the one before it, and no request fails."""

from __future__ import annotations

import http.client
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lapis.testing import until
from tests.serving.service import Service, ask, described, serving

SCRIPT = "def init(): ...\ndef run(data): return {}\n"


def revision(folder: Path, number: int, script: str | None = None, **more: Any) -> dict[str, Any]:
    """Of one service: its own folder each, one `handover` for all."""
    own = folder / str(number)
    own.mkdir(exist_ok=True)
    body = described(own, script or SCRIPT.format(number), service={"revision": number}, **more)
    return {**body, "listen": {**body["listen"], "handover": str(folder / "handover.sock")}}


class Clients:
    """Ask without pause, on connections that they keep as long as they may, and count what they hear."""

    def __init__(self, port: int, count: int) -> None:
        self.heard: Counter[Any] = Counter()
        self.connections = 0
        self._port = port
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._end.is_set():
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
                    with self._lock:
                        self.connections += 1
                answer = ask(connection, {"n": number})
                heard: Any = answer.json if answer.status == 200 else (answer.status, answer.body)
                if answer.headers["Connection"] == "close" or number % 4 == 0:  # some connect for every request
                    connection.close()
                    connection = None
            except OSError as error:
                heard, connection = repr(error), None
            with self._lock:
                self.heard[heard] += 1
        if connection is not None:
            connection.close()

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(30)


def test_under_load_not_one_request_fails(tmp_path: Path) -> None:
    first = Service(tmp_path / "1", revision(tmp_path, 1)).until_ready()
    port = first.port
    clients = Clients(port, 12)
    running = [first]
    try:
        for number in (2, 3):
            until(lambda number=number: clients.heard[number - 1] > 100)
            running.append(Service(tmp_path / str(number), revision(tmp_path, number)).until_ready())
            assert running[-1].port == port, "the address stays"
            until(lambda number=number: clients.heard[number] > 100)
            assert running[-2].process.wait(20) == 0
    finally:
        clients.stop()
        for service in running:
            service.stop()
    assert set(clients.heard) == {1, 2, 3}
    assert "taken over from the revision before" in running[-1].log
    assert not (tmp_path / "handover.sock").exists(), "the last one cleans up"


@pytest.mark.full
def test_kills_cost_a_request_each_and_updates_in_between_none(tmp_path: Path) -> None:
    def start(number: int) -> Service:
        script = f"import time\ndef init(): ...\ndef run(data):\n    time.sleep(0.001)\n    return {number}\n"
        body = revision(tmp_path, number, script, replicas={"min": 2, "max": 3})
        return Service(tmp_path / str(number), body).until_ready()

    service, kills = start(1), 0
    clients = Clients(service.port, 10)
    try:
        for number in range(2, 6):
            kills += sum(_kill_one(service, clients) for _ in range(4))
            before, service = service, start(number)
            assert before.process.wait(30) == 0
    finally:
        clients.stop()
        service.stop()
    failed = [heard for heard in clients.heard.elements() if not isinstance(heard, int)]
    assert {status for status, _ in failed} <= {502} and len(failed) <= kills


def _kill_one(service: Service, clients: Clients) -> int:
    """And go on when requests are answered again."""
    until(lambda: len(service.workers) >= 2)
    os.kill(service.workers[0], signal.SIGKILL)
    heard = clients.heard.total()
    until(lambda: clients.heard.total() > heard + 200)
    return 1


def test_what_the_old_one_has_begun_it_answers(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = (
        "import os, time\ndef init(): ...\ndef run(data):\n"
        f"    open({str(gate)!r} + '.begun', 'w').close()\n"
        f"    while not os.path.exists({str(gate)!r}): time.sleep(0.005)\n    return 'old'\n"
    )
    old = Service(tmp_path / "1", revision(tmp_path, 1, slow)).until_ready()
    heard: list[Any] = []
    with old.connection() as connection:
        thread = threading.Thread(target=lambda: heard.append(ask(connection, [])))
        thread.start()
        until(lambda: Path(f"{gate}.begun").exists())
        new = Service(tmp_path / "2", revision(tmp_path, 2)).until_ready()
        assert new.ask([]).json == 2
        assert old.process.poll() is None, "it still has something to answer"
        gate.touch()
        thread.join(20)
        assert heard[0].json == "old" and heard[0].headers["Connection"] == "close"
        assert old.process.wait(20) == 0
    assert new.stop() == 0


def test_a_connection_that_is_idle_may_be_used_once_more(tmp_path: Path) -> None:
    old = Service(tmp_path / "1", revision(tmp_path, 1)).until_ready()
    with old.connection() as connection:
        assert ask(connection, []).json == 1
        new = Service(tmp_path / "2", revision(tmp_path, 2)).until_ready()
        until(lambda: old.state["state"] == "draining")
        answer = ask(connection, [])
        assert answer.json == 1 and answer.headers["Connection"] == "close"
        assert ask(connection, []).json == 2, "connected anew"
    assert old.process.wait(20) == 0
    assert new.stop() == 0


def test_a_revision_that_cannot_start_leaves_the_one_before_untouched(tmp_path: Path) -> None:
    old = Service(tmp_path / "1", revision(tmp_path, 1)).until_ready()
    bad = Service(tmp_path / "2", revision(tmp_path, 2, "def init(): raise ValueError('bad')\ndef run(data): ...\n"))
    assert bad.process.wait(20) == 3
    assert old.state["state"] == "ready" and old.ask([]).json == 1
    again = Service(tmp_path / "3", revision(tmp_path, 3)).until_ready()
    assert again.ask([]).json == 3
    assert old.process.wait(20) == 0
    assert again.stop() == 0


def test_one_that_goes_away_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    from lapis.serving import handover

    old = Service(tmp_path / "1", revision(tmp_path, 1)).until_ready()
    taken = handover.ask(str(tmp_path / "handover.sock"))
    assert taken is not None
    taken.listener.close()
    taken._connected.close()
    assert old.ask([]).json == 1 and old.state["state"] == "ready"
    assert old.stop() == 0


def test_after_a_front_was_killed_another_takes_the_same_port(tmp_path: Path) -> None:
    first = Service(tmp_path / "1", revision(tmp_path, 1)).until_ready()
    port = first.port
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    assert (tmp_path / "handover.sock").exists(), "nobody answers there"
    body = revision(tmp_path, 1)
    again = Service(tmp_path / "1", {**body, "listen": {**body["listen"], "port": port}})
    until(lambda: again.state["pid"] == again.process.pid and again.state["state"] == "ready")
    assert again.port == port and again.ask([]).json == 1
    assert again.stop() == 0


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with serving(tmp_path / "b", SCRIPT.format(1)) as other:
        service = Service(tmp_path / "a", described(tmp_path / "a", SCRIPT.format(1), listen={"port": other.port}))
        assert service.process.wait(20) == 3
        assert f"cannot listen at 127.0.0.1:{other.port}" in service.state["error"]["message"]
        service.stop()


@pytest.mark.parametrize("length", [200])
def test_a_path_that_is_long_does_no_harm(tmp_path: Path, length: int) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * length)
    deep.mkdir(parents=True)
    old = Service(deep / "1", revision(deep, 1)).until_ready()
    new = Service(deep / "2", revision(deep, 2)).until_ready()
    assert new.port == old.port and new.ask([]).json == 2
    assert old.process.wait(20) == 0
    assert new.stop() == 0
