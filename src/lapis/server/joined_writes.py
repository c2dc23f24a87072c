"""Lets an answer leave in one piece: uvicorn writes its head and its body one after the other, and each write wakes
whoever waits for it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SHORT = 16 << 10  # bytes that are copied sooner than written apart


class JoinedWritesProtocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, _Joining(transport, self.loop)))


class _Joining:
    """The transport, but that it holds back a short piece until the next one, or until the loop has nothing else."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def write(self, data: bytes) -> None:
        if not self._held and len(data) <= _SHORT:
            self._held = data
            self._loop.call_soon(self._let_go)
        elif len(data) <= _SHORT:
            data, self._held = self._held + data, b""
            self._transport.write(data)
        else:
            self._let_go()
            self._transport.write(data)

    def close(self) -> None:
        self._let_go()
        self._transport.close()

    def _let_go(self) -> None:
        data, self._held = self._held, b""
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
