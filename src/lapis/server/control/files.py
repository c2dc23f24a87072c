"""What can be done with bytes: blobs, snapshots, and the files of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Protocol
from urllib.parse import quote

from lapis.domain.run_file import RunFile
from lapis.domain.tree import Tree, check_path
from lapis.server.control.access import Access
from lapis.server.control.events import Events
from lapis.server.control.stores import Stores


class Writer(Protocol):
    """A blob that comes piece by piece."""

    def write(self, chunk: bytes) -> None: ...

    def commit(self, expected: str | None = None) -> tuple[str, int]:
        """Keep it; its hash and size. Raises if the hash is not the one expected."""

    def abandon(self) -> None:
        """Leave nothing behind."""


class Files:
    def __init__(self, stores: Stores, access: Access, events: Events, now: Callable[[], float]) -> None:
        self._stores = stores
        self._access = access
        self._events = events
        self._now = now

    # -- blobs

    def missing(self, hashes: Iterable[str]) -> list[str]:
        """Which of these blobs are not here."""
        return self._stores.blobs.missing(hashes)

    def put_blobs(self, blobs: Sequence[tuple[str, memoryview]]) -> int:
        """Keep many small ones; how many were here before."""
        return self._stores.blobs.put_all(blobs)

    def blob_writer(self, digest: str) -> Writer:
        self._stores.blobs.path(digest)  # raises if it cannot be the hash of anything
        return self._stores.blobs.writer()

    def open_blob(self, digest: str) -> tuple[int, BinaryIO]:
        """Its size and its bytes."""
        return self._stores.blobs.size(digest), self._stores.blobs.open(digest)

    # -- snapshots

    def add_snapshot(self, workspace_id: str, tree: Tree, blobs: Sequence[tuple[str, memoryview]]) -> list[str]:
        """Keep a snapshot, or say which of its blobs are missing; some may come along."""
        self._stores.blobs.put_all(blobs)
        lacking = self._stores.blobs.missing(entry.hash for entry in tree)
        if not lacking and not self._stores.snapshots.ask_for(tree.id, self._now()):
            self._stores.snapshots.add(tree, self._now())
        return lacking

    def snapshot(self, workspace_id: str, snapshot_id: str) -> Tree:
        return self._stores.snapshots.get(snapshot_id)

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

    def writer(self, workspace_id: str, run_id: str) -> Writer:
        """For the bytes of a file that `put` will name."""
        self._stores.runs.get(workspace_id, run_id)  # raises before anything is sent in vain
        return self._stores.blobs.writer()

    def put(self, workspace_id: str, run_id: str, named: dict[str, tuple[str, int]]) -> None:
        """Name blobs, given by hash and size, as files of the run."""
        self._stores.files.put(workspace_id, run_id, {check_path(name): of for name, of in named.items()}, self._now())
        self._events.tell(run_id)

    def put_stored(self, workspace_id: str, run_id: str, named: dict[str, str]) -> None:
        """The same of blobs that are here already, given by hash."""
        size = self._stores.blobs.size
        self.put(workspace_id, run_id, {name: (digest, size(digest)) for name, digest in named.items()})
