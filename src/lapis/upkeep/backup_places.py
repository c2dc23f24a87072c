"""Where a backup is written to and read from: a folder, or one file (tar), with the same in it."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import tarfile
import time
from typing import Any, BinaryIO, NamedTuple, Protocol

from lapis.upkeep.contents import DATABASE

MANIFEST = "backup.json"  # the last that is written, with the size and hash of every file: without it, it was cut off
MARKER = "lapis-backup.txt"  # of a folder: that it is one, or was to become one
_CHUNK = 1 << 20


class Kept(NamedTuple):
    """One file of a backup."""

    size: int
    hash: str


class Target(Protocol):
    """Where a backup is written to."""

    def has(self, name: str, size: int) -> str | None:
        """The hash of a file that is there already and never changes; None if it is to be put."""

    def put(self, name: str, file: BinaryIO, size: int) -> Kept:
        """Exactly `size` bytes of the file, which may grow meanwhile."""

    def finish(self, manifest: bytes) -> None: ...


class Folder:
    def __init__(self, root: str) -> None:
        self._root = root
        os.makedirs(root, mode=0o700, exist_ok=True)
        os.chmod(root, 0o700)
        self._before = read_manifest(root) or {}
        with open(os.open(os.path.join(root, MARKER), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("A backup of Lapis. Where backup.json is lacking, it was cut off: back up again.\n")
        if os.path.exists(os.path.join(root, MANIFEST)):
            os.remove(os.path.join(root, MANIFEST))
            _fsync(root)

    def has(self, name: str, size: int) -> str | None:
        kept = self._before.get(name)
        path = os.path.join(self._root, name)
        return (
            kept.hash if kept and kept.size == size and os.path.exists(path) and os.path.getsize(path) == size else None
        )

    def put(self, name: str, file: BinaryIO, size: int) -> Kept:
        path = os.path.join(self._root, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as copy:
            kept = copied(file, copy, size)
            os.fsync(copy.fileno())
        return kept

    def finish(self, manifest: bytes) -> None:
        """What was of use to an earlier backup only goes."""
        wanted = set(json.loads(manifest)["files"]) | {MARKER}
        for at, _, names in os.walk(self._root):
            _fsync(at)
            for name in names:
                path = os.path.join(at, name)
                if os.path.relpath(path, self._root) not in wanted:
                    os.remove(path)
        self.put(MANIFEST, io.BytesIO(manifest), len(manifest))
        _fsync(self._root)


class File:
    """Written beside its place: what stood there before stays until the new one is whole."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._draft = f"{path}.{os.getpid()}.part"
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        for left in glob.glob(f"{glob.escape(path)}.*.part"):  # by one that was killed: it opens everything too
            if not os.path.exists(f"/proc/{left.split('.')[-2]}"):
                os.remove(left)
        self._file = open(os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")  # noqa: SIM115
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)

    def __enter__(self) -> File:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._file.close()
        if kind is not None:
            os.remove(self._draft)

    def has(self, name: str, size: int) -> str | None:
        return None

    def put(self, name: str, file: BinaryIO, size: int) -> Kept:
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, 0o600, int(time.time())
        hashing = _Hashing(file)
        self._tar.addfile(member, hashing)
        return Kept(size, hashing.digest.hexdigest())

    def finish(self, manifest: bytes) -> None:
        self.put(MANIFEST, io.BytesIO(manifest), len(manifest))
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self._draft, self._path)
        _fsync(os.path.dirname(os.path.abspath(self._path)))


class _Hashing:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        return data


def copied(source: BinaryIO, target: BinaryIO, size: int) -> Kept:
    """`size` bytes from one to the other; fewer only if there are no more."""
    digest, left = hashlib.sha256(), size
    while left and (chunk := source.read(min(_CHUNK, left))):
        digest.update(chunk)
        target.write(chunk)
        left -= len(chunk)
    return Kept(size - left, digest.hexdigest())


def read_manifest(folder: str) -> dict[str, Kept] | None:
    """What a folder holds as a backup; None if it is none, or was cut off."""
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            return listed(json.load(file))
    except (OSError, ValueError):
        return None


def listed(manifest: Any) -> dict[str, Kept]:
    """What a manifest lists; ValueError if it is none."""
    try:
        return {str(name): Kept(int(size), str(digest)) for name, (size, digest) in manifest["files"].items()}
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it is not a list of files") from None


def is_backup(file: str) -> bool:
    """Whether a file is a backup, or the beginning of one: its database comes first."""
    try:
        with tarfile.open(file, "r|") as tar:
            first = tar.next()
            return first is not None and first.name == DATABASE
    except (tarfile.TarError, OSError, EOFError):
        return False


def _fsync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
