"""Workers die, hang, are too few or too many: requests are answered all the same, or refused with a reason."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lapis.serving.call import Call
from lapis.serving.description import Description, ReplicaCount, Worker
from lapis.serving.replicas import LOOKS, Replica, Replicas
from lapis.testing import until
from tests.serving.service import Answer, Service, described, serving

# Takes what it is asked to do from files, so that nothing has to be timed.
SCRIPT = """
import json, os, time

def init():
    pass

def run(data):
    asked = json.loads(data)
    if asked.get("wait"):
        open(asked["wait"] + ".begun", "a").write("%d %s\\n" % (os.getpid(), asked.get("name")))
        while not os.path.exists(asked["wait"]):
            time.sleep(0.005)
    time.sleep(asked.get("take", 0))
    if asked.get("spin"):
        open(asked["spin"], "w").close()
        while True:
            try:
                time.sleep(0.01)
            except TimeoutError:
                if not asked.get("stubborn"):
                    raise
    if asked.get("die"):
        os.kill(os.getpid(), 9)
    return {"pid": os.getpid(), "name": asked.get("name")}
"""


class Asking:
    """Requests in the background."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._threads = ThreadPoolExecutor(64)

    def __call__(self, **asked: Any) -> Future[Answer]:
        return self._threads.submit(self._service.ask, asked)


def begun(gate: Path) -> list[str]:
    """The names of the requests that wait in a worker, and its pid."""
    path = gate.with_name(gate.name + ".begun")
    return path.read_text().splitlines() if path.exists() else []


def waiting(service: Service) -> int:
    text = service.ask(path="/metrics", method="GET").body.decode()
    return int(text.split("\nlapis_waiting_requests ")[1].split()[0])


def test_a_killed_worker_fails_only_what_it_had_begun(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(tmp_path, SCRIPT) as service:
        for _ in range(40):
            service.ask({})  # it is a quick one, so requests are sent to it ahead
        ask = Asking(service)
        first = ask(wait=str(gate), name="first")
        until(lambda: begun(gate))
        others = [ask(name=str(number)) for number in range(20)]
        until(lambda: waiting(service) == 21)
        (worker,) = service.workers
        os.kill(worker, signal.SIGKILL)
        lost = first.result(20)
        assert lost.status == 502 and "ended before it had an answer" in lost.message
        answers = [other.result(20) for other in others]
        assert [each.status for each in answers] == [200] * 20
        assert [each.json["name"] for each in answers] == [str(number) for number in range(20)]
        assert {each.json["pid"] for each in answers}.isdisjoint({worker}), "another worker took over"
        until(lambda: service.workers)
        assert service.workers != [worker] and service.state["replicas"][0]["restarts"] == 1
        assert "was ended by signal 9" in service.log


def test_a_request_that_kills_every_worker_does_not_stop_the_service(tmp_path: Path) -> None:
    with serving(tmp_path, SCRIPT) as service:
        for _ in range(3):
            assert service.ask({"die": True}).status == 502
            until(lambda: service.ask({}).status == 200)
        assert "Another is started in 0.5 s." in service.log, "each time it waits a little longer"


def test_while_no_worker_can_be_had_requests_are_refused_and_later_not(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    script = SCRIPT.replace("def init():\n    pass", f"def init():\n    assert not os.path.exists({str(broken)!r})")
    with serving(tmp_path, script) as service:
        broken.touch()
        os.kill(service.workers[0], signal.SIGKILL)
        until(lambda: not service.workers)
        answer = service.ask({})
        assert answer.status == 503 and answer.headers["Retry-After"] == "1"
        assert answer.message == "No worker of the service is up; one is being started."
        assert service.ask(path="/health/ready", method="GET").status == 503
        assert service.ask(path="/health/live", method="GET").status == 200
        assert service.state["state"] == "ready", "it is the workers that fail, not the service"
        broken.unlink()
        until(lambda: service.ask({}).status == 200)


def test_one_of_two_workers_goes_on_while_the_other_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path, SCRIPT, replicas={"min": 2, "max": 2}) as service:
        until(lambda: len(service.workers) == 2)
        first, second = service.workers
        os.kill(first, signal.SIGKILL)
        until(lambda: first not in service.workers)
        assert [service.ask({}).status for _ in range(20)] == [200] * 20
        until(lambda: len(service.workers) == 2)
        assert second in service.workers and first not in service.workers


def test_a_full_queue_is_refused_with_a_reason_and_the_rest_is_answered(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(tmp_path, SCRIPT, limits={"queue": 5}) as service:
        ask = Asking(service)
        first = ask(wait=str(gate))
        until(lambda: begun(gate))
        queued = [ask(name=str(number)) for number in range(5)]
        until(lambda: waiting(service) == 6)
        refused = service.ask({})
        assert refused.status == 429 and refused.headers["Retry-After"] == "1"
        assert refused.message.startswith("The service has 5 requests waiting")
        gate.touch()
        assert [each.result(20).status for each in [first, *queued]] == [200] * 6
        assert service.ask({}).status == 200


def test_a_run_that_takes_too_long_is_a_504_and_the_worker_lives_on(tmp_path: Path) -> None:
    with serving(tmp_path, SCRIPT, limits={"seconds": 1}) as service:
        before = service.workers
        answer = service.ask({"spin": str(tmp_path / "spins")})
        assert answer.status in (504, 500) and "1 seconds" in answer.message
        assert service.ask({}).json["pid"] == before[0]
        assert "TimeoutError: run() took more than 1 seconds" in service.log


def test_the_time_of_each_request_begins_with_it(tmp_path: Path) -> None:
    """And not with the one for which the clock was set first."""
    with serving(tmp_path, SCRIPT, limits={"seconds": 4}) as service:
        assert [service.ask({"take": 1.5}).status for _ in range(3)] == [200] * 3
        answer = service.ask({"spin": str(tmp_path / "spins")})
        assert answer.status in (504, 500) and "4 seconds" in answer.message
        until(lambda: "TimeoutError: run() took more than 4 seconds" in service.log)
        assert service.log.count("Traceback") == 1


def test_a_worker_that_cannot_be_brought_back_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path, SCRIPT, limits={"seconds": 0.5}) as service:
        (before,) = service.workers
        answer = service.ask({"spin": str(tmp_path / "spins"), "stubborn": True})
        assert answer.status == 504 and answer.message == "No answer within 0.5 seconds."
        until(lambda: service.workers not in ([], [before]), lambda: service.log)
        assert service.ask({}).status == 200
        assert "did not come back from run()" in service.log


def test_one_who_leaves_is_not_waited_for(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(tmp_path, SCRIPT) as service:
        ask = Asking(service)
        first = ask(wait=str(gate), name="first")
        until(lambda: begun(gate))
        with service.socket() as connected:
            body = b'{"wait": "%s", "name": "left"}' % str(gate).encode()
            connected.sendall(
                b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            until(lambda: waiting(service) == 2)
        until(lambda: waiting(service) == 1)
        gate.touch()
        assert first.result(20).status == 200
        assert service.ask({}).status == 200
        assert [line.split()[1] for line in begun(gate)] == ["first"], "it was never begun"


def test_load_brings_more_workers_and_they_go_when_it_is_over(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    count = {"min": 1, "max": 3, "refresh_seconds": 0.2}
    with serving(tmp_path, SCRIPT, replicas=count) as service:
        ask = Asking(service)
        asked = [ask(wait=str(gate), name=str(number)) for number in range(6)]
        until(lambda: len({line.split()[0] for line in begun(gate)}) == 3, lambda: service.log)
        assert len(service.state["replicas"]) == 3, "not more than it may"
        gate.touch()
        assert [each.result(20).status for each in asked] == [200] * 6
        until(lambda: len(service.state["replicas"]) == 1, lambda: service.log)
        assert "3 workers instead of" in service.log and "1 workers instead of 3: they are enough" in service.log
        assert "signal" not in service.log
        assert service.ask({}).status == 200


def test_workers_that_are_too_many_end_with_what_they_have_begun(tmp_path: Path) -> None:
    gate, slow = tmp_path / "gate", tmp_path / "slow"
    with serving(tmp_path, SCRIPT, replicas={"min": 1, "max": 3, "refresh_seconds": 0.2}) as service:
        ask = Asking(service)
        asked = [ask(wait=str(gate), name=str(number)) for number in range(6)]
        until(lambda: len(service.workers) == 3, lambda: service.log)
        gate.touch()
        assert [each.result(20).status for each in asked] == [200] * 6
        held = [ask(wait=str(slow), name=f"held {number}") for number in range(2)]
        until(lambda: len(begun(slow)) == 2, lambda: service.log)
        service.describe({**service.description, "replicas": {"min": 1, "max": 1}})
        until(lambda: len(service.workers) == 1, lambda: service.log)
        slow.touch()
        assert [each.result(20).status for each in held] == [200, 200]
        until(lambda: len(service.state["replicas"]) == 1, lambda: service.log)


def test_the_number_of_workers_follows_the_largest_need_of_the_last_looks() -> None:
    async def watch() -> list[int]:
        replicas, counts = Replicas(_may_have(1, 4), ".", lambda _: None, lambda: None), []
        began, replicas._none_since = time.monotonic(), None
        for second in range(16):
            replicas.queue.extend([_call()] * (3 if second == 2 else 0))
            replicas.tick(began + second + 0.01)
            replicas.queue.clear()
            counts.append(replicas._wanted)
        return counts

    assert asyncio.run(watch()) == [1, 1, 1] + [4] * LOOKS + [1] * 3


def test_a_service_that_nobody_asks_is_at_rest() -> None:
    async def watch() -> list[bool]:
        replicas = Replicas(_may_have(1, 1), ".", lambda _: None, lambda: None)
        replicas.all.append(Replica(1, replicas))
        replicas.submit(_call())
        seen = [replicas.stirred.is_set()]
        replicas.tick(time.monotonic())
        seen.append(replicas.stirred.is_set())
        replicas.queue.clear()
        replicas.tick(time.monotonic())
        return [*seen, replicas.stirred.is_set()]

    assert asyncio.run(watch()) == [True, True, False]


def _may_have(least: int, most: int) -> Description:
    worker = Worker(("python",), ".", {})
    return Description("id", "name", 1, worker, {"script": "score.py"}, replicas=ReplicaCount(least, most))


def _call() -> Call:
    class Nobody:
        def answered(self, call: Call, status: int, lines: bytes, body: bytes) -> None: ...

    call = Call(Nobody(), b"POST", b"/score", [])
    call.arrived = time.monotonic()
    return call


def test_a_worker_may_answer_several_at_once(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(tmp_path, SCRIPT, replicas={"concurrent_per_replica": 3}) as service:
        ask = Asking(service)
        asked = [ask(wait=str(gate), name=str(number)) for number in range(4)]
        until(lambda: len(begun(gate)) == 3)
        until(lambda: waiting(service) == 4)
        assert len(begun(gate)) == 3
        gate.touch()
        assert sorted(each.result(20).json["name"] for each in asked) == ["0", "1", "2", "3"]


def test_many_clients_at_once_all_get_their_own_answer(tmp_path: Path) -> None:
    with serving(tmp_path, SCRIPT, replicas={"min": 2, "max": 2}) as service:
        wrong: list[Any] = []

        def be_a_client(client: int) -> None:
            with service.connection() as connection:
                from tests.serving.service import ask as ask_on

                for number in range(50):
                    name = f"{client}-{number}"
                    answer = ask_on(connection, {"name": name})
                    if answer.status != 200 or answer.json["name"] != name:
                        wrong.append((name, answer.status, answer.body))

        _all_at_once(be_a_client, 16)
        assert wrong == []
        assert service.ask(path="/metrics", method="GET").body.count(b'lapis_requests_total{status="200"} 800') == 1


def _all_at_once(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def test_an_interpreter_that_is_not_there_is_told(tmp_path: Path) -> None:
    worker = {"argv": ["/no/such/python", "-m", "lapis.scoring.worker"]}
    service = Service(tmp_path, described(tmp_path, SCRIPT, worker=worker))
    assert service.process.wait(20) == 3
    assert "/no/such/python: No such file or directory" in service.state["error"]["message"]
    service.stop()


def test_workers_end_with_a_front_that_is_killed_even_if_they_hang(tmp_path: Path) -> None:
    with serving(tmp_path, SCRIPT) as service:
        (worker,) = service.workers
        asked = Asking(service)(spin=str(tmp_path / "spins"))
        until(lambda: (tmp_path / "spins").exists())
        service.process.kill()
        until(lambda: not Path(f"/proc/{worker}").exists())
        with pytest.raises(OSError):
            asked.result(20)


def test_a_front_that_is_asked_to_end_answers_what_it_has_begun(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(tmp_path, SCRIPT) as service:
        asked = Asking(service)(wait=str(gate))
        until(lambda: begun(gate))
        service.process.send_signal(signal.SIGTERM)
        until(lambda: service.state["state"] == "draining")
        gate.touch()
        answer = asked.result(20)
        assert answer.status == 200 and answer.headers["Connection"] == "close"
        assert service.process.wait(20) == 0
