"""Keeps bytes under the hash of what they are, in a folder."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import BinaryIO

from lapis.errors import NotFound, StorageFull, UserErrorException

_HASH = re.compile(r"[0-9a-f]{64}")


class BlobFolder:
    """A blob is written whole under a name nobody reads, then renamed: what has its name is complete."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._incoming = os.path.join(root, "incoming")
        self._made: set[str] = set()
        self._names = itertools.count()
        os.makedirs(self._incoming, exist_ok=True)

    def path(self, digest: str) -> str:
        if not _HASH.fullmatch(digest):
            raise UserErrorException(f"{digest[:80]!r} is not the sha256 of anything.")
        return os.path.join(self.root, digest[:2], digest[2:])

    def has(self, digest: str) -> bool:
        return os.path.exists(self.path(digest))

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Those that are not here: one look at a folder for all that would lie in it."""
        known: dict[str, set[str]] = {}
        lacking = []
        for digest in dict.fromkeys(digests):
            folder, name = os.path.split(self.path(digest))
            if folder not in known:
                known[folder] = set(os.listdir(folder)) if os.path.isdir(folder) else set()
            if name not in known[folder]:
                lacking.append(digest)
        return lacking

    def size(self, digest: str) -> int:
        try:
            return os.path.getsize(self.path(digest))
        except FileNotFoundError:
            raise NotFound(f"No blob {digest} is stored here.") from None

    def open(self, digest: str) -> BinaryIO:
        try:
            return open(self.path(digest), "rb")
        except FileNotFoundError:
            raise NotFound(f"No blob {digest} is stored here.") from None

    def put(self, chunks: Iterable[bytes | memoryview], expected: str | None = None) -> tuple[str, int]:
        """Store what the chunks hold; give its hash and size. `expected` must be its hash."""
        writer = self.writer()
        try:
            for chunk in chunks:
                writer.write(chunk)
            return writer.commit(expected)
        except BaseException:
            writer.abandon()
            raise

    def put_bytes(self, data: bytes | memoryview, expected: str | None = None) -> tuple[str, int]:
        """As `put`, for what is in memory: the hash is known, and checked, before anything is written."""
        name = hashlib.sha256(data).hexdigest()
        if expected is not None and name != expected:
            raise _other_hash(expected, name)
        temporary = os.path.join(self._incoming, f"{os.getpid()}-{next(self._names)}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                written = os.write(descriptor, data) if len(data) else 0
                while written < len(data):
                    written += os.write(descriptor, memoryview(data)[written:])
            finally:
                os.close(descriptor)
            self.publish(temporary, name)
        except OSError as error:
            _remove(temporary)
            with _full_disk_is_clear(self.root):
                raise error
        return name, len(data)

    def writer(self) -> BlobWriter:
        """For a blob that comes bit by bit."""
        return BlobWriter(self, os.path.join(self._incoming, f"{os.getpid()}-{next(self._names)}"))

    def adopt(self, path: str) -> tuple[str, int]:
        """Store a finished file of the same file system without copying it; give its hash and size."""
        digest, size = hashlib.sha256(), 0
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                size += len(chunk)
        temporary = os.path.join(self._incoming, f"{os.getpid()}-{next(self._names)}")
        os.link(path, temporary)
        self.publish(temporary, digest.hexdigest())
        return digest.hexdigest(), size

    def publish(self, temporary: str, name: str) -> None:
        final = self.path(name)
        folder = os.path.dirname(final)
        if folder not in self._made:
            os.makedirs(folder, exist_ok=True)
            self._made.add(folder)
        os.replace(temporary, final)


class BlobWriter:
    def __init__(self, folder: BlobFolder, temporary: str) -> None:
        self._folder = folder
        self._temporary = temporary
        self._digest = hashlib.sha256()
        self._size = 0
        with _full_disk_is_clear(folder.root):
            self._file = open(temporary, "wb", buffering=0)

    def write(self, chunk: bytes | memoryview) -> None:
        self._digest.update(chunk)
        self._size += len(chunk)
        with _full_disk_is_clear(self._folder.root):
            _write_all(self._file, chunk)

    def commit(self, expected: str | None = None) -> tuple[str, int]:
        self._file.close()
        name = self._digest.hexdigest()
        if expected is not None and name != expected:
            raise _other_hash(expected, name)
        with _full_disk_is_clear(self._folder.root):
            self._folder.publish(self._temporary, name)
        return name, self._size

    def abandon(self) -> None:
        self._file.close()
        _remove(self._temporary)


def _other_hash(expected: str, name: str) -> UserErrorException:
    return UserErrorException(f"What came as blob {expected} has the hash {name}. Nothing was stored.")


def _write_all(file: FileIO, chunk: bytes | memoryview) -> None:
    view = memoryview(chunk)
    while len(view):
        view = view[file.write(view) :]


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        pass


@contextmanager
def _full_disk_is_clear(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"The disk that holds {where} is full. Free some space, then try again.") from error
        raise
