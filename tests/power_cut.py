"""What a power cut leaves of a folder: the writes of a process, recorded by strace, replayed up to any moment.

The model is a file system that keeps a journal (ext4, XFS): what was written to a file is there for sure once that
file was synced; names (made, moved, removed) are there for sure, in their order, once anything was synced after them.
Of what was written later any part may be there, or none.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

CALLS = (
    "openat,write,writev,pwrite64,pwritev,ftruncate,truncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,"
    "mkdirat,rmdir,fsync,fdatasync,syncfs,newfstatat,clone,clone3,fork,vfork"
)
STRACE = ["strace", "-f", "-y", "-xx", "-s", "100000000", "-e", f"trace={CALLS}", "-e", "signal=none"]

_LINE = re.compile(r"(\d+) +(.*)")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_DESCRIPTOR = re.compile(r"(?:AT_FDCWD|\d+)<((?:[^<>]|<[^>]*>)*?)>")


@dataclass
class _File:
    """Its content once it was synced last, and what was written since, in order."""

    synced: bytes = b""
    since: list[tuple[int, bytes | None]] = field(default_factory=list)  # where, what; None: cut there

    def write(self, at: int, data: bytes | None) -> None:
        self.since.append((at, data))

    def sync(self) -> None:
        self.synced, self.since = self.content(len(self.since)), []

    def content(self, writes: int) -> bytes:
        found = bytearray(self.synced)
        for at, data in self.since[:writes]:
            if data is None:
                del found[at:]
                found.extend(b"\0" * (at - len(found)))
            else:
                found.extend(b"\0" * (at - len(found)))
                found[at : at + len(data)] = data
        return bytes(found)

    def length(self) -> int:
        return len(self.content(len(self.since)))


class Disk:
    """Files by the names that they have now, and by those that they have for sure."""

    def __init__(self) -> None:
        self.names: dict[str, _File] = {}
        self.sure: dict[str, _File] = {}
        self._offsets: dict[int, tuple[_File, int | None]] = {}  # by descriptor; None: at the end

    def leave(self, folder: Path, chance: random.Random | None) -> None:
        """Write down what a cut leaves now: what is sure, and by chance more."""
        names = self.sure if chance is None or chance.random() < 0.5 else self.names
        for name, file in names.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content(0 if chance is None else chance.randint(0, len(file.since))))

    def take(self, call: str, arguments: str, result: int, root: str) -> None:
        strings = [_bytes(each).decode("utf-8", "surrogateescape") for each in _STRING.findall(arguments)]
        about = _DESCRIPTOR.match(arguments)
        path = _below(root, _bytes(about[1]).decode("utf-8", "surrogateescape")) if about else None
        if result < 0:
            return
        if call == "openat":
            self._open(_below(root, strings[0]), arguments, result)
        elif call in ("write", "writev"):
            data = b"".join(_bytes(each) for each in _STRING.findall(arguments))[:result]
            self._write(int(arguments.split("<")[0]), data)
        elif call in ("pwrite64", "pwritev") and path in self.names:
            data = b"".join(_bytes(each) for each in _STRING.findall(arguments))[:result]
            self.names[path].write(int(arguments.rsplit(",", 1)[1].strip(" )"), 0), data)
        elif call == "ftruncate" and path in self.names:
            self.names[path].write(int(arguments.rsplit(",", 1)[1].strip(" )"), 0), None)
        elif call == "truncate" and (cut := _below(root, strings[0])) in self.names:
            self.names[cut].write(int(arguments.rsplit(",", 1)[1].strip(" )"), 0), None)
        elif call.startswith(("rename", "link")):
            self._move(_below(root, strings[0]), _below(root, strings[1]), call.startswith("rename"))
        elif call.startswith("unlink") and (gone := _unlinked(root, arguments, strings)) in self.names:
            del self.names[gone]
        elif call in ("fsync", "fdatasync", "syncfs"):
            for file in self.names.values() if call == "syncfs" else [self.names[path]] if path in self.names else ():
                file.sync()
            self.sure = dict(self.names)

    def _open(self, name: str | None, arguments: str, descriptor: int) -> None:
        self._offsets.pop(descriptor, None)
        if name is None or ("O_WRONLY" not in arguments and "O_RDWR" not in arguments):
            return
        if "O_CREAT" in arguments and name not in self.names:
            self.names[name] = _File()
        elif "O_TRUNC" in arguments and name in self.names:
            self.names[name].write(0, None)
        if name in self.names:
            self._offsets[descriptor] = (self.names[name], None if "O_APPEND" in arguments else 0)

    def _write(self, descriptor: int, data: bytes) -> None:
        file, at = self._offsets.get(descriptor, (None, None))
        if file is not None:
            file.write(file.length() if at is None else at, data)
            self._offsets[descriptor] = (file, None if at is None else at + len(data))

    def _move(self, old: str | None, new: str | None, goes: bool) -> None:
        if old in self.names and new is not None:
            self.names[new] = self.names[old]
            if goes and old != new:
                del self.names[old]
        for name in [each for each in self.names if old and each.startswith(f"{old}/")] if goes else ():
            self.names[f"{new}{name[len(old or '') :]}"] = self.names.pop(name)


def replayed(log: Path, root: str, marks: Collection[str]) -> Iterator[tuple[str, Disk]]:
    """The disk at each moment at which a file was asked for that has a `mark` for its name, with that name."""
    disk, mine, begun = Disk(), set[str](), dict[str, str]()
    with open(log, encoding="latin-1") as lines:
        for line in lines:
            pid, said = _LINE.match(line).groups()  # type: ignore[union-attr]
            mine = mine or {pid}
            if pid not in mine:
                continue
            if said.endswith("<unfinished ...>"):
                begun[pid] = said.removesuffix("<unfinished ...>").rstrip()
                continue
            if said.startswith("<... "):
                said = begun.pop(pid) + said.partition(" resumed>")[2]
            call, _, rest = said.partition("(")
            arguments, _, result = rest.rpartition(" = ")
            if not result or result.startswith("?"):
                continue
            value = int(re.match(r"-?\d+", result)[0])  # type: ignore[index]
            if call in ("clone", "clone3", "fork", "vfork"):
                mine |= {str(value)} if "CLONE_THREAD" in arguments else set()
            elif call == "newfstatat":
                path = b"".join(_bytes(each) for each in _STRING.findall(arguments)[:1]).decode("utf-8", "replace")
                if os.path.basename(path) in marks:
                    yield os.path.basename(path), disk
            else:
                disk.take(call, arguments, value, root)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", "")) if "\\x" in text else text.encode("latin-1")


def _below(root: str, path: str) -> str | None:
    path = path.removesuffix(" (deleted)")
    return os.path.relpath(path, root) if path.startswith(root + os.sep) else None


def _unlinked(root: str, arguments: str, strings: list[str]) -> str | None:
    """unlinkat has a folder and a name in it, unless the name is whole."""
    if strings[0].startswith("/"):
        return _below(root, strings[0])
    about = _DESCRIPTOR.match(arguments)
    return _below(root, os.path.join(_bytes(about[1]).decode(), strings[0])) if about else None
