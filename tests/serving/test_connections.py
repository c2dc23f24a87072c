"""A service holds as many connections as it can, and answers honest requests all the same."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from lapis.serving.description import Description, Worker
from lapis.serving.front import Front

ASKED = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class NoReplicas:
    """Nothing that is asked here comes to a worker."""

    description: Any = None


async def answered_beside(half_open: int, most: int) -> tuple[bytes, int]:
    front = Front(Description("id", "name", 1, Worker((), "", {}), {}), NoReplicas(), print, most)  # type: ignore[arg-type]
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    await front.listen(listener)
    port = listener.getsockname()[1]
    held = []
    for _ in range(half_open):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost")
        held.append(writer)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASKED)
    answer = await asyncio.wait_for(reader.read(), 20)
    count = len(front.connections)
    front.stop_accepting(0.0)
    for each in (writer, *held):
        each.close()
    return answer, count


def test_whoever_has_been_silent_the_longest_makes_room() -> None:
    answer, count = asyncio.run(answered_beside(half_open=30, most=8))
    assert answer.startswith(b"HTTP/1.1 200 ") and count <= 8
