"""What front and worker say to each other over their socket: frames of a kind, a request's number and a payload."""

from __future__ import annotations

import json
import select
import socket
from struct import Struct
from typing import Any, Iterator, Sequence

HELLO, START, READY, FAILED, REQUEST, ANSWER, END = range(1, 8)
"""A worker says HELLO with its number, the front START with what to load, the worker READY or FAILED. Then come
REQUESTs and ANSWERs, many in one go where they queue, until the front says END or either is gone."""

WIDEST = 1 << 31  # bytes of a payload
HEAD = Struct("<IIB")  # bytes of the payload, number, kind
META = Struct("<I")  # a request's payload: bytes of its meta, the meta, the body
ANSWERED = Struct("<HII")  # an answer's payload: status, bytes of the header lines, microseconds; lines, body
_PIECE = 1 << 18


def frame(kind: int, number: int, payload: bytes) -> bytes:
    return HEAD.pack(len(payload), number, kind) + payload


def message(kind: int, body: Any, number: int = 0) -> bytes:
    return frame(kind, number, json.dumps(body).encode())


def meta_of(words: Sequence[bytes]) -> bytes:
    """Method, target, then names and values of headers, none of which may contain a line feed."""
    return b"\n".join(words)


def words_of(meta: bytes) -> list[bytes]:
    return meta.split(b"\n")


def request(number: int, meta: bytes, body: bytes) -> bytes:
    size = META.size + len(meta) + len(body)
    return b"".join((HEAD.pack(size, number, REQUEST), META.pack(len(meta)), meta, body))


def answer(number: int, status: int, lines: bytes, body: bytes, seconds: float) -> bytes:
    """`lines` are header lines that end in CR LF each."""
    size = ANSWERED.size + len(lines) + len(body)
    took = min(int(seconds * 1e6), 0xFFFFFFFF)
    head = HEAD.pack(size, number, ANSWER)
    return b"".join((head, ANSWERED.pack(status, len(lines), took), lines, body))


def split_request(payload: bytes) -> tuple[bytes, bytes]:
    """Its meta and its body."""
    end = META.size + META.unpack_from(payload)[0]
    return payload[META.size : end], payload[end:]


class Incoming:
    """Puts the pieces that a socket gives together again."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._wanted = 0

    def feed(self, piece: bytes) -> list[tuple[int, int, bytes]]:
        """Kind, number and payload of every frame that is now complete."""
        if self._kept:
            self._kept += piece
            if len(self._kept) < self._wanted:
                return []
            piece = bytes(self._kept)
            self._kept = bytearray()
        found, at, length = [], 0, len(piece)
        while length - at >= HEAD.size:
            size, number, kind = HEAD.unpack_from(piece, at)
            if size > WIDEST:
                raise ValueError(f"a frame of {size} bytes")
            end = at + HEAD.size + size
            if end > length:
                self._wanted = end - at
                break
            found.append((kind, number, piece[at + HEAD.size : end]))
            at = end
        else:
            self._wanted = HEAD.size
        if at < length:
            self._kept += piece[at:] if at else piece
        return found


class Line:
    """The worker's end of the socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._incoming = Incoming()
        self._buffer = memoryview(bytearray(_PIECE))  # one for all: a new one as large for each costs more than reading

    def receive(self, seconds: float | None = None) -> list[tuple[int, int, bytes]] | None:
        """Every frame that is there, after waiting for one, at most `seconds`; None when the front is gone."""
        while True:
            if seconds is not None and not select.select([self._socket], [], [], seconds)[0]:
                return []
            try:
                size = self._socket.recv_into(self._buffer)
            except (ConnectionResetError, BrokenPipeError):
                return None
            if not size:
                return None
            found = self._incoming.feed(bytes(self._buffer[:size]))
            if found:
                return found

    def requests(self) -> Iterator[tuple[int, bytes]]:
        """Number and payload of each request, until the front wants no more or is gone."""
        while True:
            found = self.receive()
            if found is None:
                return
            for kind, number, payload in found:
                if kind == END:
                    return
                yield number, payload

    def send(self, content: bytes) -> None:
        try:
            self._socket.sendall(content)
        except (ConnectionResetError, BrokenPipeError):
            pass  # the next receive says so
