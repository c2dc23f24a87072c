"""Speaks the kernel's side of FUSE: a tree of files that can be read and nothing else, for as long as it is mounted.

Straight to /dev/fuse, without libfuse: such a tree answers six kinds of request, and where the device is nothing else
is needed. The layouts are those of <linux/fuse.h>, which the kernel keeps for every version that was ever spoken.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

LOOKUP, FORGET, GETATTR, READ, STATFS, INIT, READDIR, INTERRUPT, DESTROY, BATCH_FORGET = (
    1, 2, 3, 15, 17, 26, 28, 36, 38, 42,
)  # fmt: skip
_UNANSWERED = {FORGET, INTERRUPT, DESTROY, BATCH_FORGET}  # a reader that is killed does not wait for us anyway

_REQUEST = struct.Struct("=IIQQIIII")  # length, kind, id, node, and who asks
_REPLY = struct.Struct("=IiQ")  # length, -errno, id
_INIT = struct.Struct("=IIIIHHIIHH32x")
_ATTRIBUTES = struct.Struct("=QQQQQQIIIIIIIIII")
_ENTRY = struct.Struct("=QQQQII")
_VALID = struct.Struct("=QII")
_SPAN = struct.Struct("=QQI")  # of READ and READDIR: handle, offset, size
_DIRENT = struct.Struct("=QQII")
_STATFS = struct.Struct("=QQQQQIIII24x")

_VERSION = (7, 31)
# ASYNC_READ, PARALLEL_DIROPS, MAX_PAGES; NO_OPEN and NO_OPENDIR spare a round trip and keep what was read in memory
_FLAGS = 1 << 0 | 1 << 18 | 1 << 22 | 1 << 17 | 1 << 24
_AT_ONCE = 64  # requests that the kernel may have under way in the background
_PAGES = 256  # of one read
_AHEAD = 1 << 20  # bytes that the kernel itself may read ahead, if it was allowed to
_FOR_EVER = 1 << 31  # seconds: neither names nor sizes change under a mount
_MOST = 64 << 10  # bytes of one request: nothing is ever written
_ROOT = 1

Answer = Callable[["bytes | memoryview | OSError"], None]
Read = Callable[[int, int, int, Answer], None]  # file, offset, size; the answer may come later, from any thread


class _Node(NamedTuple):
    parent: int
    size: int
    file: int | None  # its number, None for a folder
    children: dict[bytes, int]


class Mounted:
    """Files, each with its path and size, behind an open `device` that was mounted."""

    def __init__(self, device: int, files: Sequence[tuple[str, int]], read: Read) -> None:
        self._device = device
        self._nodes = _tree(files)
        self._read = read
        self._now = int(time.time())
        self._rows: dict[int, list[tuple[bytes, int]]] = {}  # of folders that were listed

    def serve(self) -> None:
        """Answer until it is unmounted."""
        while True:
            try:
                request = os.read(self._device, _MOST)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):  # whoever asked has left
                    continue
                raise
            _, kind, number, node, *_ = _REQUEST.unpack_from(request)
            if kind == READ:
                self._begin_read(number, node, request)
            elif kind not in _UNANSWERED:
                self._reply(number, self._answer(kind, node, request[_REQUEST.size :]))

    def _answer(self, kind: int, node: int, body: bytes) -> bytes | OSError:
        if kind == LOOKUP:
            found = self._nodes[node].children.get(body.rstrip(b"\0"))
            if found is None:
                return OSError(errno.ENOENT, "")
            return _ENTRY.pack(found, 0, _FOR_EVER, _FOR_EVER, 0, 0) + self._attributes(found)
        if kind == GETATTR:
            return _VALID.pack(_FOR_EVER, 0, 0) + self._attributes(node)
        if kind == READDIR:
            return self._listing(node, *_SPAN.unpack_from(body)[1:])
        if kind == STATFS:
            size = sum(each.size for each in self._nodes)
            return _STATFS.pack(size >> 12, 0, 0, len(self._nodes), 0, 4096, 255, 4096, 0)
        if kind == INIT:
            _, _, _, offered = struct.unpack_from("=IIII", body)
            return _INIT.pack(*_VERSION, _AHEAD, offered & _FLAGS, _AT_ONCE, _AT_ONCE * 3 // 4, 4096, 1, _PAGES, 0)
        return OSError(errno.ENOSYS, "")  # the kernel remembers, and does not ask again

    def _begin_read(self, number: int, node: int, request: bytes) -> None:
        _, offset, size = _SPAN.unpack_from(request, _REQUEST.size)
        file = self._nodes[node].file
        if file is None:
            self._reply(number, OSError(errno.EISDIR, ""))
            return
        self._read(file, offset, size, lambda answer: self._reply(number, answer))

    def _reply(self, number: int, answer: bytes | memoryview | OSError) -> None:
        fault, body = (answer.errno or errno.EIO, b"") if isinstance(answer, OSError) else (0, answer)
        try:
            os.writev(self._device, [_REPLY.pack(_REPLY.size + len(body), -fault, number), body])
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # whoever asked has left, or it was unmounted
                raise

    def _attributes(self, number: int) -> bytes:
        node = self._nodes[number]
        mode = stat.S_IFDIR | 0o555 if node.file is None else stat.S_IFREG | 0o444
        blocks = (node.size + 511) // 512
        times = (self._now, self._now, self._now, 0, 0, 0)
        owner = (os.getuid(), os.getgid(), 0)
        return _ATTRIBUTES.pack(number, node.size, blocks, *times, mode, 1, *owner, 4096, 0)

    def _listing(self, number: int, offset: int, size: int) -> bytes:
        """What of a folder fits into `size` bytes, from place `offset` on."""
        node, listed = self._nodes[number], b""
        if number not in self._rows:
            self._rows[number] = [(b".", number), (b"..", node.parent), *node.children.items()]
        rows = self._rows[number]
        for place in range(offset, len(rows)):
            name, child = rows[place]
            kind = stat.S_IFDIR if self._nodes[child].file is None else stat.S_IFREG
            row = _DIRENT.pack(child, place + 1, len(name), kind >> 12) + name
            row += bytes(-len(row) % 8)
            if len(listed) + len(row) > size:
                break
            listed += row
        return listed


def _tree(files: Sequence[tuple[str, int]]) -> list[_Node]:
    """By their numbers; the first is none, the second the root."""
    root = _Node(_ROOT, 0, None, {})
    nodes = [root, root]
    for number, (path, size) in enumerate(files):
        *folders, name = os.fsencode(path).strip(b"/").split(b"/")
        at = _ROOT
        for folder in folders:
            if folder not in nodes[at].children:
                nodes[at].children[folder] = len(nodes)
                nodes.append(_Node(at, 0, None, {}))
            at = nodes[at].children[folder]
        nodes[at].children[name] = len(nodes)
        nodes.append(_Node(at, size, number, {}))
    return nodes
