"""Nobody holds a connection for nothing, and what could be understood in two ways is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest
import uvicorn

from lapis.domain.limits import HTTP_HEAD
from lapis.server.connections import ConnectionLimits, bounded
from lapis.testing import until
from tests.server.raw import answer, opened, said, status

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
QUICK = ConnectionLimits(
    head_seconds=0.2, body_seconds=0.2, body_rate=1 << 20, take_seconds=0.2, linger_seconds=0.1, look_every=0.02
)
PATIENT = ConnectionLimits(look_every=0.02)


async def reader(scope: Any, receive: Any, send: Any) -> None:
    """Reads all of the body, waits as long as it is asked to, and says how much it was."""
    if scope["type"] == "lifespan":
        return
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return
        size, more = size + len(message["body"]), message["more_body"]
    await asyncio.sleep(float(scope["query_string"] or 0))
    body = b"%d bytes" % size if scope["path"] != "/large" else bytes(64 << 20)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(limits: ConnectionLimits) -> Iterator[tuple[int, Any]]:
    config = uvicorn.Config(reader, port=0, http=bounded(limits), lifespan="off", log_config=None, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1], server.server_state
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


@pytest.mark.parametrize("begun", [b"", b"\r\n", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n"])
def test_a_head_that_never_comes_whole_is_not_waited_for(begun: bytes) -> None:
    with serving(QUICK) as (port, _), closing(opened(port, begun)) as connected:
        assert b"408 " in answer(connected)


def test_empty_lines_after_an_answer_do_not_keep_a_connection() -> None:
    with serving(QUICK) as (port, _), closing(opened(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) as connected:
        assert connected.recv(65536).endswith(b"0\r\n\r\n")
        connected.sendall(b"\r\n\r\n")
        assert status(answer(connected)) == 408


def test_a_body_that_trickles_is_not_waited_for() -> None:
    with serving(QUICK) as (port, _), closing(opened(port, POST + b"Content-Length: 9\r\n\r\nabc")) as connected:
        assert status(answer(connected)) == 408


def test_work_that_takes_long_is_answered_whatever_the_limits_are() -> None:
    with serving(QUICK) as (port, _):
        assert b"0 bytes" in said(port, HEAD.replace(b"/ ", b"/?0.6 ") + b"\r\n")


def test_an_answer_that_nobody_takes_is_given_up() -> None:
    with serving(QUICK) as (port, state), closing(opened(port, HEAD.replace(b"/ ", b"/large ") + b"\r\n")):
        until(lambda: state.total_requests or state.connections)
        until(lambda: not state.connections)


def test_an_honest_request_is_answered_while_all_connections_are_held_open() -> None:
    with serving(ConnectionLimits(most=8, look_every=0.02)) as (port, state), ExitStack() as held:
        for _ in range(30):
            held.enter_context(closing(opened(port, b"GET / HTTP/1.1\r\nHost")))
        assert b"0 bytes" in said(port, HEAD + b"\r\n")
        assert len(state.connections) <= 8


def test_when_all_connections_are_at_work_the_next_is_told_to_come_again() -> None:
    with serving(ConnectionLimits(most=1, look_every=0.02)) as (port, state):
        with closing(opened(port, HEAD.replace(b"/ ", b"/?30 ") + b"\r\n")):
            until(lambda: state.tasks)
            refused = said(port, HEAD + b"\r\n")
    assert status(refused) == 503 and b"retry-after" in refused


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
        (POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
        (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Content-Length: -1\r\n\r\n", 400),
        (POST + b"Content-Length: +3\r\n\r\nabc", 400),
        (HEAD + b"Folded: a\r\n b\r\n\r\n", 400),
        (HEAD + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400),
        (HEAD + b"".join(b"A%d: b\r\n" % number for number in range(200)) + b"\r\n", 431),
        (HEAD + b"Long: " + bytes([97]) * (HTTP_HEAD + 1) + b"\r\n\r\n", 431),
        (HEAD.replace(b"/ ", b"/" + bytes([97]) * 10_000 + b" ") + b"\r\n", 414),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n1;" + bytes([97]) * (2 * HTTP_HEAD) + b"\r\nx\r\n0\r\n\r\n", 431),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"T: t\r\n" * HTTP_HEAD + b"\r\n", 431),
    ],
)
def test_what_can_be_understood_in_two_ways_or_has_no_end_is_refused(request_: bytes, expected: int) -> None:
    with serving(PATIENT) as (port, _):
        assert status(said(port, request_)) == expected


def test_a_body_in_the_smallest_chunks_is_taken() -> None:
    with serving(PATIENT) as (port, _):
        chunks = b"1\r\nx\r\n" * 20_000
        assert b"20000 bytes" in said(port, POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")


def test_requests_follow_one_another_on_a_connection() -> None:
    with serving(PATIENT) as (port, _):
        large = POST.replace(b"Connection: close\r\n", b"") + b"Content-Length: 300000\r\n\r\n" + bytes(300_000)
        answered = said(port, large + large + HEAD + b"\r\n")
        assert answered.count(b"300000 bytes") == 2 and b"0 bytes" in answered
