"""Sockets by which processes of one machine speak, and by which they hand over open files."""

from __future__ import annotations

import array
import contextlib
import os
import socket
from typing import Iterator


@contextlib.contextmanager
def for_us_alone() -> Iterator[None]:
    """Sockets that are bound meanwhile can be connected to by this user only."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def short(path: str) -> Iterator[str]:
    """The path of a unix socket in a form that is never too long for one, while this lasts."""
    if len(os.fsencode(path)) < 100 or not os.path.isdir("/proc/self/fd"):
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield os.path.join("/proc/self/fd", str(folder), os.path.basename(path))
    finally:
        os.close(folder)


def send_file(connected: socket.socket, said: bytes, descriptor: int) -> None:
    """Some bytes, and an open file."""
    connected.sendmsg([said], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])


def receive_files(connected: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """At most so many bytes, and the open files that came along: they are the caller's to close."""
    found = array.array("i")
    room = socket.CMSG_SPACE(2 * found.itemsize)
    said, along, _, _ = connected.recvmsg(most, room, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    for level, kind, content in along:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(content[: len(content) - len(content) % found.itemsize])
    return said, found.tolist()
