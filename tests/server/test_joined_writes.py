"""An answer leaves the server in one piece, and all of it leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lapis.server.joined_writes import _Joining


class Wire:
    """Remembers what was written, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.pieces.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def written(*pieces: bytes | str) -> list[bytes]:
    """What arrives when these are written one after the other; "turn" lets the loop go on, "close" closes."""
    wire = Wire()

    async def write() -> None:
        transport: Any = _Joining(wire, asyncio.get_running_loop())  # type: ignore[arg-type]
        for piece in pieces:
            if isinstance(piece, bytes):
                transport.write(piece)
            elif piece == "turn":
                await asyncio.sleep(0)
            else:
                transport.close()
        await asyncio.sleep(0)

    asyncio.run(write())
    return wire.pieces


LARGE = b"x" * 100_000


@pytest.mark.parametrize(
    ("pieces", "arrive"),
    [
        ([b"head", b"body"], [b"headbody"]),
        ([b"head", b""], [b"head"]),
        ([b"head"], [b"head"]),
        ([b"head", "turn", b"body"], [b"head", b"body"]),
        ([b"head", LARGE], [b"head", LARGE]),
        ([b"head", b"body", b"head", b"body"], [b"headbody", b"headbody"]),
        ([b"head", "close"], [b"head"]),
        ([b"head", b"body", "close"], [b"headbody"]),
    ],
)
def test_short_pieces_are_joined_and_none_is_lost(pieces: list[bytes | str], arrive: list[bytes]) -> None:
    assert written(*pieces) == arrive


def test_a_connection_that_was_closed_meanwhile_is_not_written_to() -> None:
    wire = Wire()

    async def write() -> None:
        _Joining(wire, asyncio.get_running_loop()).write(b"head")  # type: ignore[arg-type]
        wire.close()
        await asyncio.sleep(0)

    asyncio.run(write())
    assert wire.pieces == []
