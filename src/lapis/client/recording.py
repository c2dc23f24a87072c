"""Keeps what this process logs to its runs: a journal on disk for each, shipped by one quiet thread.

Inside a job the agent ships, and there is nothing to do here but to write.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from typing import Any, Callable, Mapping

from lapis.client import shipping, stored_record, streams, unwritten
from lapis.client.http_client import Client
from lapis.client.journal import Journal
from lapis.domain import delivery, interactive
from lapis.domain import settings as settings_module
from lapis.domain.metrics import Point
from lapis.errors import AzureMLException, ServiceException, Unavailable, UserErrorException
from lapis.machine.processes import seen_from, started

_SHIP_EVERY = 0.25
_BEAT_EVERY = 10.0


class Recorder:
    """What one run's `log` calls write to. Children made in this process share their parent's."""

    def __init__(self, journal: str, spool: str) -> None:
        self.journal = Journal(journal)
        self.files = spool  # a folder; it is there only while it holds something

    def record(self, kind: str, name: str, value: Any, step: int | None = None, run_id: str = "") -> None:
        self.journal.append(Point(kind, time.time(), name, value, step, run_id))

    def spool(self, run_id: str, name: str, content: bytes) -> None:
        """Keep a file for a run: on disk or, while that has no room, in memory. It counts once it is complete."""
        path, held = os.path.join(self.files, run_id, name), self.journal.unwritten

        def write(data: bytes) -> bytes | None:
            return None if _written(path, data) else data

        left = content if held else write(content)
        if left is not None:
            held.keep(write, left)

    def note_stored(self, name: str, digest: str) -> None:
        """A file of the run's folders was stored before somebody came to collect it; that one is to know."""
        raise NotImplementedError

    def stored(self) -> dict[str, str]:
        """Which ones were, by name, with the hash of what is stored."""
        raise NotImplementedError

    def flush(self, seconds: float) -> None:
        """Return once the server has all that was logged so far; Unavailable if that takes longer."""
        raise NotImplementedError

    def _wait_for_room(self, deadline: float) -> None:
        while self.journal.unwritten:
            if time.monotonic() > deadline:
                raise Unavailable(f"What was logged is held in memory: there is no room for {self.journal.path}.")
            time.sleep(0.05)


class JobRecorder(Recorder):
    """Inside a job: the agent follows the journal and the spool."""

    def __init__(self, folder: str, client: Client, workspace_id: str, run_id: str) -> None:
        super().__init__(os.path.join(folder, "journal.jsonl"), os.path.join(folder, "files"))
        self._stream = os.environ.get("LAPIS_JOURNAL") or "journal"
        self._client, self._workspace_id, self._run_id = client, workspace_id, run_id
        self._folder = folder

    def note_stored(self, name: str, digest: str) -> None:
        stored_record.add(self._folder, name, digest)

    def stored(self) -> dict[str, str]:
        return stored_record.read(self._folder)

    def flush(self, seconds: float) -> None:
        from lapis.domain import frames

        deadline = time.monotonic() + seconds
        self._wait_for_room(deadline)
        size, key = streams.whole_lines(self.journal.path), f"journal:{self._stream}"
        ask = frames.encode({"parts": [{"kind": "journal", "stream": self._stream, "offset": 0}]}, [b""])
        path = f"/workspaces/{self._workspace_id}/runs/{self._run_id}/report"
        while shipping.spooled(self.files) or self._client.call("POST", path, data=ask)["positions"][key] < size:
            if time.monotonic() > deadline:
                raise Unavailable(f"What run {self._run_id} logged had not arrived after {seconds:g} s.")
            time.sleep(0.05)


class ProcessRecorder(Recorder):
    """Outside a job: this process ships, from one thread for all its runs."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, stream: str, owner: bool) -> None:
        super().__init__(*interactive.left_by(settings_module.home(), workspace_id, run_id, "" if owner else stream))
        _make_folder(os.path.dirname(self.journal.path))
        self.run_id = run_id
        self.owner = owner
        self.shipper = shipping.Shipper(client, workspace_id, run_id)
        self.shipper.follow_journal(stream, self.journal.path)
        self.losses = delivery.Losses()
        self.using = threading.Lock()
        self.last_report = time.monotonic()
        self.finish: Callable[[], None] | None = None  # called when the interpreter ends and the run has not
        self.writing: dict[int, bool] = {}  # threads that are in the middle of a write: no lock, so that none waits
        self._closed = False
        self._workspace_id = workspace_id
        self._next: ProcessRecorder | None = None
        self._opening = threading.RLock()
        pump.add(self)

    def record(self, kind: str, name: str, value: Any, step: int | None = None, run_id: str = "") -> None:
        me = threading.get_ident()
        self.writing[me] = True  # before the look at `_closed`: close() waits for whoever saw it open
        try:
            if not self._closed:
                super().record(kind, name, value, step, run_id)
                if not pump.news.is_set():  # asking is cheaper than telling again
                    pump.news.set()
                return
        finally:
            self.writing.pop(me, None)
        self._after().record(kind, name, value, step, run_id)

    def spool(self, run_id: str, name: str, content: bytes) -> None:
        me = threading.get_ident()
        self.writing[me] = True
        try:
            if not self._closed:
                super().spool(run_id, name, content)
                return
        finally:
            self.writing.pop(me, None)
        self._after().spool(run_id, name, content)

    def _after(self) -> ProcessRecorder:
        """For what is logged when the run has ended, by a child of it, say: a journal of its own."""
        with self._opening:
            if self._next is None:
                to = self.shipper.client, self._workspace_id, self.run_id
                later = ProcessRecorder(*to, guest_stream(), owner=False)
                later.using = self.using  # it is sent after the rest of this one
                self._next = later
            return self._next

    def note_stored(self, name: str, digest: str) -> None:
        self.shipper.stored[name] = digest

    def stored(self) -> dict[str, str]:
        return self.shipper.stored

    def ship(self, patience: float = 0.0) -> None:
        beat = self.owner and time.monotonic() - self.last_report > _BEAT_EVERY
        if not (beat or self.shipper.behind() or shipping.spooled(self.files)):
            return
        with self.using:
            self._send_spool()
            before = self.shipper.backlog()
            self.shipper.report(patience=patience)
            self.last_report = time.monotonic()
            if 0 < self.shipper.backlog() < before:
                pump.news.set()  # it did not fit into one report

    def close(self, verdict: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> dict[str, Any]:
        """Everything, then how the run ended. What other threads log meanwhile arrives after that."""
        with self.using:
            self.losses += delivery.Losses(self.journal.unwritten.finish(unwritten.PATIENCE))
            self._send_spool()
            ends, of_journal = self.shipper.settle()
            losses = self.losses + of_journal
            told = delivery.not_delivered(verdict, losses.lost)
            told.update(at=time.time(), notices=losses.notices)
            reply = self.shipper.deliver(ends, {"verdict": told}, files)
            self._closed = True
            while set(self.writing) - {threading.get_ident()}:
                time.sleep(0.001)
            self._send_spool()
            if self.shipper.behind():
                self.shipper.deliver(self.shipper.settle()[0])
        pump.drop(self)
        self.clean()
        return reply

    def _send_spool(self) -> None:
        losses = self.shipper.send_spool(self.files)
        for what in losses.lost:
            print(f"Lapis: a file of run {self.run_id} could not be stored: {what}", file=sys.stderr)
        self.losses += losses

    def clean(self) -> None:
        """All of it has arrived: nothing need stay here."""
        self.journal.close()
        try:
            os.remove(self.journal.path)
        except FileNotFoundError:
            pass  # nothing was ever logged
        unwritten.remove_marks(self.journal.path)
        if os.path.isdir(self.files):
            import shutil

            shutil.rmtree(self.files, ignore_errors=True)

    def flush(self, seconds: float) -> None:
        self.drain(seconds, time.monotonic() + seconds)

    def drain(self, patience: float, deadline: float | None = None) -> None:
        """Send all that was logged so far, however long that takes; Unavailable if no server answers any more."""
        if self._next is not None:
            self._next.drain(patience, deadline)
        self._wait_for_room(deadline or time.monotonic() + patience)
        if self._closed or not (self.shipper.behind() or shipping.spooled(self.files)):
            return
        with self.using:
            self._send_spool()
            ends, _ = self.shipper.settle(patience)
            self.shipper.deliver(ends, patience=patience, deadline=deadline)
            self.last_report = time.monotonic()


class Pump:
    """The quiet thread. A server that is away makes it wait, never the program."""

    def __init__(self) -> None:
        self._recorders: list[ProcessRecorder] = []
        atexit.register(self._at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)
        self._begin()

    def _begin(self) -> None:
        """Also in a forked child: the runs are its parent's, and a lock that another thread held would never open."""
        self.news = threading.Event()
        self._changing = threading.Lock()
        self._thread: threading.Thread | None = None
        for recorder in self._recorders:
            recorder.using, recorder.writing = threading.Lock(), {}
        self._recorders = []

    def add(self, recorder: ProcessRecorder) -> None:
        with self._changing:
            self._recorders.append(recorder)
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="lapis-pump", daemon=True)
                self._thread.start()

    def drop(self, recorder: ProcessRecorder) -> None:
        with self._changing:
            if recorder in self._recorders:
                self._recorders.remove(recorder)

    def _loop(self) -> None:
        while True:
            self.news.wait(timeout=_BEAT_EVERY / 2)
            time.sleep(_SHIP_EVERY)  # what comes close together travels together
            self.news.clear()
            with self._changing:
                mine = list(self._recorders)
            for recorder in mine:
                try:
                    recorder.ship()
                except UserErrorException as error:  # the run was deleted, say: trying again does not help
                    self.drop(recorder)
                    print(f"Lapis: run {recorder.run_id} takes no more of what is logged: {error.message}",
                          file=sys.stderr)  # fmt: skip
                except (AzureMLException, ServiceException, OSError):
                    self.news.set()  # the journal keeps it: try again

    def _at_exit(self) -> None:
        for recorder in list(self._recorders):
            try:
                if recorder.finish is not None:
                    recorder.finish()
                else:
                    recorder.drain(patience=30.0)
                    recorder.clean()
            except (AzureMLException, ServiceException, OSError) as error:
                said = getattr(error, "message", error)
                print(
                    f"Lapis: what run {recorder.run_id} logged is kept in {recorder.journal.path}: {said}",
                    file=sys.stderr,
                )


pump = Pump()


def owner_of() -> dict[str, Any]:
    """Which process an interactive run lives in, so that the server can tell when it is gone."""
    import socket

    where = {"host": socket.gethostname(), "seen_from": seen_from()}
    return {**where, "pid": os.getpid(), "started": _started()}


def guest_stream() -> str:
    """The name of one more journal of a run that lives elsewhere, or has ended."""
    return f"guest-{os.urandom(16).hex()}"


def _started() -> str | None:
    pid = os.getpid()
    if pid not in _known_starts:
        _known_starts[pid] = started(pid)
    return _known_starts[pid]


_known_starts: dict[int, str | None] = {}


def _written(path: str, content: bytes) -> bool:
    """Whole, or not at all: a half of it leaves no trace."""
    unfinished = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(unfinished, "wb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(unfinished)
        return False
    return True


def _make_folder(folder: str) -> None:
    if os.path.isdir(folder):
        return
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise UserErrorException(
            f"Metrics are kept in {folder} until they are sent, and that folder cannot be made ({error.strerror}). "
            "Set LAPIS_HOME to a folder that can be written."
        ) from error
