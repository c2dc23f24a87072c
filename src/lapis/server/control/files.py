"""What can be done with bytes: blobs, snapshots, and the files of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol
from urllib.parse import quote

from lapis.domain import limits
from lapis.domain import run as rules
from lapis.domain.run_file import RunFile
from lapis.domain.tree import Tree, check_path
from lapis.errors import NotFound
from lapis.server.control.access import SERVER, Access, Actor
from lapis.server.control.events import Events
from lapis.server.control.holdings import Holdings
from lapis.server.control.stores import Stores


class Writer(Protocol):
    """A blob that comes piece by piece."""

    def write(self, chunk: bytes) -> None: ...

    def commit(self, expected: str | None = None) -> tuple[str, int]:
        """Keep it; its hash and size. Raises if the hash is not the one expected."""

    def abandon(self) -> None:
        """Leave nothing behind."""


class Handed(Protocol):
    """Files that were handed over open, each with a ticket that its request names."""

    def take(self, ticket: str) -> int | None:
        """The caller's to close."""


class Files:
    def __init__(
        self,
        stores: Stores,
        holdings: Holdings,
        access: Access,
        events: Events,
        handed: Handed,
        now: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._handed = handed
        self._holdings = holdings
        self._access = access
        self._events = events
        self._now = now

    # -- blobs

    def missing(self, hashes: Iterable[str], *, by: Actor = SERVER) -> list[str]:
        """Which of these blobs are to be sent: a run is not told of what others have."""
        hashes = list(hashes)
        limits.check_count("hashes", hashes, limits.FILES_OF_SNAPSHOT)
        return self._holdings.lacking(by, hashes)

    def put_blobs(self, blobs: Sequence[tuple[str, memoryview]], *, by: Actor = SERVER) -> int:
        """Keep many small ones; how many were here before."""
        known = self._stores.blobs.put_all(blobs)
        self._holdings.sent(by, [digest for digest, _ in blobs])
        return known

    def blob_writer(self, digest: str, *, by: Actor = SERVER) -> Writer:
        self._stores.blobs.path(digest)  # raises if it cannot be the hash of anything
        return _NotedWriter(self._stores.blobs.writer(), lambda name: self._holdings.sent(by, [name]))

    def copy_in_blob(self, digest: str, ticket: str, *, by: Actor = SERVER) -> bool:
        """The same of a file that was handed over. False: it has to be sent."""
        self._stores.blobs.path(digest)
        stored = self._copied_in(ticket, digest)
        if stored is not None:
            self._holdings.sent(by, [digest])
        return stored is not None

    def _copied_in(self, ticket: str, expected: str | None = None) -> tuple[str, int] | None:
        descriptor = self._handed.take(ticket)
        if descriptor is None:
            return None
        try:
            return self._stores.blobs.copy_in(descriptor, expected)
        finally:
            os.close(descriptor)

    def open_blob(self, digest: str) -> tuple[int, Iterator[bytes]]:
        """Its size and its bytes, the last of which come only when all have that hash."""
        return self._stores.blobs.size(digest), self._stores.blobs.read(digest)

    # -- snapshots

    def add_snapshot(
        self, workspace_id: str, tree: Tree, blobs: Sequence[tuple[str, memoryview]], *, by: Actor = SERVER
    ) -> list[str]:
        """Keep a snapshot, or say which of its blobs are missing; some may come along."""
        self.put_blobs(blobs, by=by)
        digests, snapshots = [entry.hash for entry in tree], self._stores.snapshots
        known = snapshots.has(workspace_id, tree.id)
        lacking = self._stores.blobs.missing(digests) if known else self._holdings.lacking(by, digests)
        if not lacking and not (known and snapshots.ask_for(workspace_id, tree.id, self._now())):
            snapshots.add(workspace_id, tree, self._now())
        return lacking

    def snapshot(self, workspace_id: str, snapshot_id: str) -> Tree:
        self._check_held(workspace_id, snapshot_id)
        return self._stores.snapshots.get(snapshot_id)

    def _check_held(self, workspace_id: str, snapshot_id: str) -> None:
        if not self._stores.snapshots.has(workspace_id, snapshot_id):
            raise NotFound(f"No snapshot with id '{snapshot_id[:80]}' is stored in this workspace.")

    def open_in_snapshot(self, workspace_id: str, snapshot_id: str, digest: str) -> tuple[int, Iterator[bytes]]:
        """The size and the bytes of a file of a snapshot."""
        self._check_held(workspace_id, snapshot_id)
        if digest not in self._stores.snapshots.hashes(snapshot_id):
            raise NotFound(f"Snapshot {snapshot_id} has no file with the hash {digest[:80]}.")
        return self.open_blob(digest)

    # -- files of a run

    def of_run(self, workspace_id: str, run_id: str) -> list[RunFile]:
        return self._stores.files.find(workspace_id, run_id)

    def links(self, workspace_id: str, run_id: str, base: str) -> list[tuple[RunFile, str]]:
        """Every file of the run, each with a link below `base` that reads it, alone, for some minutes."""
        now = self._now()
        return [
            (file, self._access.sign_link(base + quote(file.name), now)) for file in self.of_run(workspace_id, run_id)
        ]

    def get(self, workspace_id: str, run_id: str, name: str) -> RunFile:
        return self._stores.files.get(workspace_id, run_id, check_path(name))

    def read(self, workspace_id: str, run_id: str, file: RunFile, start: int = 0) -> Iterator[bytes]:
        """Its bytes from `start`, as far as they go now. What cannot be read is said before the first."""
        return self._stores.files.read(workspace_id, run_id, file, start)

    def copy_out(self, workspace_id: str, run_id: str, file: RunFile, ticket: str) -> bool:
        """Write all of it to a file that was handed over. False: it has to be read."""
        descriptor = self._handed.take(ticket)
        if descriptor is None:
            return False
        try:
            return file.hash is not None and self._stores.blobs.copy_out(file.hash, descriptor)
        finally:
            os.close(descriptor)

    def copy_in(self, workspace_id: str, run_id: str, ticket: str) -> tuple[str, int] | None:
        """Store a file that was handed over, for `put` to name; its hash and size. None: it has to be sent."""
        self._stores.runs.get(workspace_id, run_id)
        return self._copied_in(ticket)

    def writer(self, workspace_id: str, run_id: str) -> Writer:
        """For the bytes of a file that `put` will name."""
        self._stores.runs.get(workspace_id, run_id)  # raises before anything is sent in vain
        return self._stores.blobs.writer()

    def put(self, workspace_id: str, run_id: str, named: dict[str, tuple[str, int]]) -> None:
        """Name blobs, given by hash and size, as files of the run."""
        self._stores.files.put(workspace_id, run_id, {check_path(name): of for name, of in named.items()}, self._now())
        self._events.tell(run_id)

    def put_collected(self, workspace_id: str, run_id: str, name: str, of: tuple[str, int], replaces: str) -> None:
        """The same of one that was found in the run's folders: it replaces what has that hash, and nothing else."""
        files = {check_path(name): (*of, replaces)}
        notices = self._stores.files.put_collected(workspace_id, run_id, files, self._now())
        if notices:
            self._stores.runs.change(workspace_id, run_id, lambda run: rules.warned(run, notices))
        self._events.tell(run_id)

    def put_stored(self, workspace_id: str, run_id: str, named: Mapping[str, str], *, by: Actor = SERVER) -> None:
        """The same of blobs that are here already, given by hash."""
        limits.check_count("files", named, limits.FILES_AT_ONCE)
        self._holdings.check(by, named.values())
        size = self._stores.blobs.size
        self.put(workspace_id, run_id, {name: (digest, size(digest)) for name, digest in named.items()})


class _NotedWriter:
    """Tells of the blob once it is whole."""

    def __init__(self, writer: Writer, tell: Callable[[str], None]) -> None:
        self._writer = writer
        self._tell = tell

    def write(self, chunk: bytes) -> None:
        self._writer.write(chunk)

    def commit(self, expected: str | None = None) -> tuple[str, int]:
        stored = self._writer.commit(expected)
        self._tell(stored[0])
        return stored

    def abandon(self) -> None:
        self._writer.abandon()
