"""Keeps bytes under the hash of what they are, in a folder: each in a file of its own, or small ones in packs."""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from typing import BinaryIO

from lapis.domain.packs import SMALL
from lapis.errors import AzureMLException, NotFound, StorageFull, UserErrorException
from lapis.machine import on_disk
from lapis.server.store import file_copies
from lapis.server.store.collected import Collected
from lapis.server.store.packs import PackFolder
from lapis.server.store.recently_checked import RecentlyChecked

_PACKED_FROM = 16  # fewer blobs than this that come at once are files of their own
_HASH = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20
_OF_NOTHING = hashlib.sha256(b"").hexdigest()[2:]
_MOST_UNSETTLED = 4096  # blobs
FRESH = 24 * 3600.0  # seconds: what came or was asked for so lately may be named any moment
_log = logging.getLogger("lapis.server")


class BlobFolder:
    """A blob or a pack is written whole under a name nobody reads, then renamed: what has its name is complete.

    Its date says when it came or was last asked for. Whoever is told that a blob is here may name it for a day after,
    without sending it: `collect` removes what nothing names and nobody asked for since.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._incoming = os.path.join(root, "incoming")
        self._made: set[str] = set()
        self._names = itertools.count()
        self._unsettled: set[str] = set()  # files that may not be on the disk yet
        self._settling = threading.Lock()
        self._recent = RecentlyChecked()
        self._collecting = threading.Lock()  # between a look at a blob's date and what follows from it
        os.makedirs(self._incoming, exist_ok=True)
        for left in os.listdir(self._incoming):
            _remove(os.path.join(self._incoming, left))  # of a server that was killed: nobody will finish it
        self._packs = PackFolder(os.path.join(root, "packs"))

    def settle(self) -> None:
        """Wait until every blob that came is on the disk."""
        with self._settling:
            fresh, self._unsettled = self._unsettled, set()
            try:
                on_disk.settle_all(fresh, self.root)
            except OSError:
                self._unsettled |= fresh
                raise

    def path(self, digest: str) -> str:
        if not _HASH.fullmatch(digest):
            raise UserErrorException(f"{digest[:80]!r} is not the sha256 of anything.")
        return self._path(digest)

    def has(self, digest: str) -> bool:
        with self._collecting:
            return self._packs.ask_for(digest) or _asked_for(self.path(digest))

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Those that are not here."""
        return [digest for digest in dict.fromkeys(digests) if not self.has(digest)]

    def packs_of(self, digests: Iterable[str]) -> list[str]:
        """The names, below `packs`, of those that hold some of these blobs; the others are files of their own."""
        return self._packs.names(digests)

    def size(self, digest: str) -> int:
        self.has(digest)
        packed = self._packs.size(digest)
        if packed is not None:
            return packed
        try:
            return os.path.getsize(self.path(digest))
        except FileNotFoundError:
            raise NotFound(f"No blob {digest} is stored here.") from None

    def read(self, digest: str, start: int = 0) -> Iterator[bytes]:
        """Its bytes from `start`, checked: the last of them come only when all have the hash that they are kept under.

        What is known before the first is raised at once: that nothing is here, or that something small is damaged.
        """
        chunks = self._checked(digest, self.open_unchecked(digest))
        first = next(chunks, b"")
        return _from(start, itertools.chain([first], chunks))

    def read_whole(self, digest: str) -> bytes:
        return b"".join(self.read(digest))

    def open_unchecked(self, digest: str) -> BinaryIO:
        """For who looks at a part of it and believes nothing that stands there."""
        try:
            return open(self.path(digest), "rb")
        except FileNotFoundError:
            packed = self._packs.read(digest)
        if packed is None:
            raise NotFound(f"No blob {digest} is stored here.")
        return io.BytesIO(packed)

    def _checked(self, digest: str, file: BinaryIO) -> Iterator[bytes]:
        found, held = hashlib.sha256(), b""
        with file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
                if held:
                    yield held
                held = chunk
        if found.hexdigest() != digest:
            raise self._damaged(digest)
        if held:
            yield held

    def _damaged(self, digest: str) -> AzureMLException:
        """Put aside what has not the hash it is named after: it counts as missing, and can be sent again."""
        aside = os.path.join(self.root, "damaged")
        os.makedirs(aside, exist_ok=True)
        with suppress(FileNotFoundError):  # another reader was faster
            os.replace(self._path(digest), os.path.join(aside, digest))
        said = f"Blob {digest} is damaged on the server's disk: its bytes are not those that were stored."
        _log.error("%s It is put aside in %s.", said, aside)
        return AzureMLException(f"{said} It is put aside and counts as missing: submit or register again.")

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
        name = _checked_hash(data, expected)
        self._write(name, data)
        return name, len(data)

    def put_all(self, blobs: Sequence[tuple[str, memoryview]]) -> int:
        """Store blobs that came together, all of them or none if a hash is wrong; give how many were here before.

        Many small ones become a pack.
        """
        given = {_checked_hash(data, expected): data for expected, data in blobs}
        new = self.missing(given)
        small = [(name, given[name]) for name in new if len(given[name]) <= SMALL]
        if len(small) >= _PACKED_FROM:
            temporary = self._temporary()
            with self._cleared(temporary):
                self._came(self._packs.add(small, temporary))
        for name in new:
            if name not in self._packs:
                self._write(name, given[name])
        return len(given) - len(new)

    def _write(self, name: str, data: bytes | memoryview) -> None:
        temporary = self._temporary()
        with self._cleared(temporary):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                written = os.write(descriptor, data) if len(data) else 0
                while written < len(data):
                    written += os.write(descriptor, memoryview(data)[written:])
            finally:
                os.close(descriptor)
            self.publish(temporary, name)

    @contextmanager
    def _cleared(self, temporary: str) -> Iterator[None]:
        """What fails leaves nothing behind."""
        with _full_disk_is_clear(self.root):
            try:
                yield
            except OSError:
                _remove(temporary)
                raise

    def writer(self) -> BlobWriter:
        """For a blob that comes bit by bit."""
        return BlobWriter(self, self._temporary())

    def copy_in(self, source: int, expected: str | None = None) -> tuple[str, int] | None:
        """Store what an open file holds; give its hash and size. None: it cannot be copied, and has to be sent."""
        temporary = self._temporary()
        try:
            with self._cleared(temporary), open(temporary, "xb+", buffering=0) as file:
                name = file_copies.copy_in(source, file.fileno())
                size = os.fstat(file.fileno()).st_size
                if expected is not None and name != expected:
                    raise _other_hash(expected, name)
                self.publish(temporary, name)
                self._recent.note(name, file.fileno())
            return name, size
        except file_copies.NotPossible:
            _remove(temporary)
            return None
        except BaseException:
            _remove(temporary)
            raise

    def copy_out(self, digest: str, target: int) -> bool:
        """Write a blob to an open file; False: it cannot be copied, and has to be read.

        It is checked as it is when it is read, unless it was a short while ago and nobody has touched it since.
        """
        try:
            file = open(self.path(digest), "rb", buffering=0)
        except FileNotFoundError:
            return False  # in a pack, or not here
        with file:
            try:
                if self._recent.has(digest, file.fileno()):
                    file_copies.copy_unhashed(file.fileno(), target)
                    return True
                if file_copies.copy_out(file.fileno(), target) != digest:
                    raise self._damaged(digest)
                self._recent.note(digest, file.fileno())
                return True
            except (file_copies.NotPossible, OSError):
                return False  # whoever reads it is told why

    def adopt(self, path: str) -> tuple[str, int]:
        """Store a finished file of the same file system without copying it; give its hash and size."""
        digest, size = hashlib.sha256(), 0
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
        temporary = self._temporary()
        with self._cleared(temporary):
            os.link(path, temporary)
            os.utime(temporary)  # it may not have grown for long, and is named only now
            self.publish(temporary, digest.hexdigest())
        return digest.hexdigest(), size

    def publish(self, temporary: str, name: str) -> None:
        final = self.path(name)
        folder = os.path.dirname(final)
        if folder not in self._made:
            os.makedirs(folder, exist_ok=True)
            self._made.add(folder)
        os.replace(temporary, final)
        self._came(final)

    def _came(self, path: str) -> None:
        self._unsettled.add(path)
        if len(self._unsettled) > _MOST_UNSETTLED:  # nobody names them for long
            self.settle()

    def collect(
        self, named: Callable[[str], bool], before: float, dry_run: bool, go_on: Callable[[], bool]
    ) -> list[Collected]:
        """Remove blobs, packs and unfinished ones that nothing names and nobody asked for since `before`."""
        loose = Collected("blobs that nothing names")
        for folder in sorted(os.scandir(self.root), key=lambda entry: entry.name):
            for entry in os.scandir(folder.path) if len(folder.name) == 2 and go_on() else ():
                digest = folder.name + entry.name
                if _HASH.fullmatch(digest) and not named(digest):
                    loose.take(entry.path, before, dry_run, self._collecting)
        packed = self._packs.collect(named, before, dry_run, go_on, self._temporary, self._collecting)
        unfinished = Collected("uploads that were cut off")
        for entry in os.scandir(self._incoming):
            unfinished.take(entry.path, before, dry_run, self._collecting)
        return [loose, packed, unfinished]

    def _path(self, digest: str) -> str:
        return f"{self.root}/{digest[:2]}/{digest[2:]}"

    def _temporary(self) -> str:
        return os.path.join(self._incoming, f"{os.getpid()}-{next(self._names)}")


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


def _from(start: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks without their first `start` bytes."""
    for chunk in chunks:
        if start < len(chunk):
            yield chunk[start:] if start else chunk
        start = max(0, start - len(chunk))


def _asked_for(path: str) -> bool:
    """Whether it is there; then it counts as new. A power cut leaves names of which not a byte was written."""
    try:
        found = os.stat(path)
        if found.st_mtime < time.time() - FRESH / 2:
            os.utime(path)
    except FileNotFoundError:
        return False
    return found.st_size > 0 or path.endswith(_OF_NOTHING)


def _checked_hash(data: bytes | memoryview, expected: str | None) -> str:
    name = hashlib.sha256(data).hexdigest()
    if expected is not None and name != expected:
        raise _other_hash(expected, name)
    return name


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
