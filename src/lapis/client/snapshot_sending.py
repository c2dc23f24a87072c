"""Brings a folder's content to the server: what was just read goes on its way while the rest is still hashed."""

from __future__ import annotations

import os
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple

from lapis.client import snapshot
from lapis.client.shipping import read_whole, send_path
from lapis.domain import frames, in_words, packs
from lapis.domain import settings as settings_module
from lapis.domain.tree import Tree, TreeEntry
from lapis.errors import SnapshotException

if TYPE_CHECKING:
    from typing import Protocol

    from lapis.client.http_client import Client

    class Workspace(Protocol):
        """What this needs to know of a workspace: how to speak to the server, and the address below which it lies."""

        @property
        def _client(self) -> Client: ...
        @property
        def _base(self) -> str: ...


_BATCH = 2 << 20  # bytes of small files that travel together
_ALONG = 256 << 10  # so little is sent unasked, along with the list of files: mostly the server lacks it
_UNDER_WAY = 2  # batches that may wait for the server before reading waits too


class Sent(NamedTuple):
    id: str
    said: str  # what went, and what was left out without being asked to


def send_snapshot(workspace: Workspace, path: str, ignore_files: Iterable[str] = snapshot.IGNORE_FILES) -> Sent:
    """Store a folder's content; only what the server lacks is sent."""
    folder = os.path.abspath(path)
    if os.path.isfile(folder):
        plan = snapshot.scan(os.path.dirname(folder))
        only = [file for file in plan.files if file.path == os.path.basename(folder)]
        plan = snapshot.Plan(plan.folder, only, [])
    elif os.path.isdir(folder):
        plan = snapshot.scan(folder, ignore_files)
    else:
        raise SnapshotException(f"There is no file or folder {folder} to take a snapshot of.")
    said = snapshot.warning_for(plan)
    if said:
        print(f"Lapis: {said}", file=sys.stderr)
    cache = os.path.join(settings_module.load().home, "cache", "hashes")
    with _Courier(workspace) as courier:
        tree = snapshot.hash_plan(plan, _cache_file(folder, cache), courier=courier)
        reply = _add(workspace, tree, courier.wait())
    if reply["missing"]:
        sources = {entry.hash: (file.source, entry.size) for entry, file in zip(tree, plan.files)}
        _send_blobs(workspace, [(digest, *sources[digest]) for digest in reply["missing"]])
        reply = _add(workspace, tree, {})
        if reply["missing"]:
            raise SnapshotException(f"{len(reply['missing'])} files did not arrive. Submit again.")
    return Sent(str(reply["id"]), _summary(plan))


def send_listed(workspace: Workspace, files: dict[str, str]) -> str:
    """A snapshot of single files, by their path in it; its id."""
    hashes = send_files(workspace, files)
    tree = Tree(TreeEntry(name, hashes[name], os.path.getsize(path)) for name, path in files.items())
    return str(_add(workspace, tree, {})["id"])


def send_files(workspace: Workspace, files: dict[str, str]) -> dict[str, str]:
    """Store the content of files, by whatever names; the hash of each. Only what the server lacks is sent."""
    hashed = {name: snapshot.hash_file(path) for name, path in files.items()}
    sizes = {digest: (files[name], size) for name, (digest, size) in hashed.items()}
    missing = workspace._client.call("POST", "/blobs/missing", {"hashes": list(sizes)})["missing"]
    _send_blobs(workspace, [(digest, *sizes[digest]) for digest in missing], "Sending files")
    return {name: digest for name, (digest, _) in hashed.items()}


def _add(workspace: Workspace, tree: Tree, along: dict[str, bytes]) -> Any:
    """Ask the server to keep the snapshot: it does, or says which blobs it lacks."""
    body = frames.encode({"files": tree.to_json(), "hashes": list(along)}, list(along.values()))
    return workspace._client.call("POST", workspace._base + "/snapshots", data=body)


class _Courier(snapshot.Courier):
    """Sends small files in batches, from a thread of its own. Holds no more than a few batches in memory."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._held: dict[str, bytes] = {}
        self._size = 0
        self._batches: SimpleQueue[dict[str, bytes] | None] = SimpleQueue()
        self._room = threading.Semaphore(_UNDER_WAY)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._progress: Any = None
        self._ask = True

    def __enter__(self) -> _Courier:
        return self

    def __exit__(self, kind: Any, failure: BaseException | None, trace: Any) -> None:
        """In case of a failure nobody waits for what is under way."""
        self._failure = self._failure or failure
        self._batches.put(None)
        if self._progress is not None:
            self._progress.end()

    def expect(self, size: int) -> None:
        self._progress = show_progress("Sending the snapshot", size)

    def take(self, digest: str, content: bytes) -> None:
        self._held[digest] = content
        self._size += len(content)
        if self._size >= _BATCH:
            self._hand_over()

    def end(self) -> None:
        if self._size > _ALONG:
            self._hand_over()
        self._batches.put(None)

    def wait(self) -> dict[str, bytes]:
        """Until all is delivered; give what is too little for a batch of its own."""
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._held

    def _hand_over(self) -> None:
        self._room.acquire()
        if self._failure is not None:
            raise self._failure
        self._batches.put(self._held)
        self._held, self._size = {}, 0
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver_all, daemon=True)
            self._thread.start()

    def _deliver_all(self) -> None:
        for batch in iter(self._batches.get, None):
            try:
                if self._failure is None:
                    self._deliver(batch)
                    self._progress.add(sum(map(len, batch.values())))
            except BaseException as failure:
                self._failure = failure
            finally:
                self._room.release()

    def _deliver(self, batch: dict[str, bytes]) -> None:
        """Ask what is missing, and send that. Where all of a batch was, the next goes unasked."""
        call, wanted = self._workspace._client.call, list(batch)
        if self._ask:
            wanted = call("POST", "/blobs/missing", {"hashes": wanted})["missing"]
            self._ask = len(wanted) < len(batch)
        if wanted:
            sent = call("POST", "/blobs", data=packs.encode([(digest, batch[digest]) for digest in wanted]))
            self._ask = self._ask or sent["known"] > 0


def _send_blobs(workspace: Workspace, blobs: list[tuple[str, str, int]], what: str = "Sending the snapshot") -> None:
    """Hash, path and size of each: small ones packed together, large ones streamed, with progress."""
    progress = show_progress(what, sum(size for _, _, size in blobs))
    for batch in _batches(blob for blob in blobs if blob[2] <= packs.SMALL):
        contents = [(digest, read_whole(source, size)) for digest, source, size in batch]
        workspace._client.call("POST", "/blobs", data=packs.encode(contents))
        progress.add(sum(size for _, _, size in batch))
    for digest, source, size in blobs:
        if size > packs.SMALL:
            send_path(workspace._client, f"/blobs/{digest}", source, progress.add)
    progress.end()


def _batches(blobs: Iterable[tuple[str, str, int]]) -> Iterator[list[tuple[str, str, int]]]:
    batch: list[tuple[str, str, int]] = []
    held = 0
    for blob in blobs:
        batch.append(blob)
        held += blob[2]
        if held >= _BATCH:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def _summary(plan: snapshot.Plan) -> str:
    what = f"{len(plan.files)} file{'' if len(plan.files) == 1 else 's'}, {in_words.size(plan.total_size)}"
    unasked = [path for path, reason in plan.skipped if "by default" in reason or reason.startswith("link")]
    if not unasked:
        return what
    more = f" and {len(unasked) - 8} more" if len(unasked) > 8 else ""
    return f"{what}; left out by default: {', '.join(unasked[:8])}{more}"


def _cache_file(folder: str, cache: str) -> str | None:
    try:
        os.makedirs(cache, exist_ok=True)
    except OSError:
        return None  # it only saves time
    return snapshot.cache_path_for(folder, cache)


class _Progress:
    """A bar in a terminal, a line now and then elsewhere; nothing for what takes no time."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done, self._told = what, total, 0, 0.0
        self._shown = False
        self._noisy = total > 32 << 20

    def add(self, size: int) -> None:
        self._done += size
        if not self._noisy:
            return
        part = min(1.0, self._done / max(1, self._total))
        if part < min(1.0, self._told + (0.01 if sys.stderr.isatty() else 0.1)):
            return
        self._told = part
        text = f"{self._what}: {self._done / 1e6:.0f} of {self._total / 1e6:.0f} MB ({part:.0%})"
        if sys.stderr.isatty():
            bar = "#" * int(part * 30)
            sys.stderr.write(f"\r[{bar:<30}] {text}")
        else:
            sys.stderr.write(f"Lapis: {text}\n")
        sys.stderr.flush()
        self._shown = True

    def end(self) -> None:
        if self._shown and sys.stderr.isatty():
            sys.stderr.write("\n")


show_progress: Callable[[str, int], Any] = _Progress  # the command line puts a bar of its own here
