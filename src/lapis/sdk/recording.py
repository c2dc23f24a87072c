"""Keeps what this process logs to its runs: a journal on disk for each, shipped by one quiet thread.

Inside a job the agent ships, and there is nothing to do here but to write.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import threading
import time
from typing import Any, Callable, Mapping

from lapis.domain import settings as settings_module
from lapis.domain.metrics import Point
from lapis.errors import AzureMLException, ServiceException, Unavailable, UserErrorException
from lapis.sdk.client import Client
from lapis.sdk.journal import Journal
from lapis.sdk.process import started
from lapis.sdk.shipping import Shipper

_SHIP_EVERY = 0.25
_BEAT_EVERY = 10.0


class Recorder:
    """What one run's `log` calls write to. Children made in this process share their parent's."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.journal = Journal(os.path.join(folder, "journal.jsonl"))

    def record(self, kind: str, name: str, value: Any, step: int | None = None, run_id: str = "") -> None:
        self.journal.append(Point(kind, time.time(), name, value, step, run_id))

    def spool(self, name: str, write: Callable[[str], None]) -> None:
        """Keep a file for the run: `write` puts it at the path it is given; it counts once it is complete."""
        path = os.path.join(self.folder, "files", *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        root, extension = os.path.splitext(os.path.basename(path))
        unfinished = os.path.join(os.path.dirname(path), f".{root}{extension}")  # plots go by the extension
        write(unfinished)
        os.replace(unfinished, path)

    def flush(self, seconds: float) -> None:
        """Return once the server has all that was logged so far; Unavailable if that takes longer."""
        raise NotImplementedError


class JobRecorder(Recorder):
    """Inside a job: the agent follows the journal and the spool."""

    def __init__(self, folder: str, client: Client, workspace_id: str, run_id: str) -> None:
        super().__init__(folder)
        self._client, self._workspace_id, self._run_id = client, workspace_id, run_id

    def flush(self, seconds: float) -> None:
        from lapis.domain import frames

        try:
            size = os.path.getsize(self.journal.path)
        except OSError:
            return
        ask = frames.encode({"parts": [{"kind": "journal", "stream": "journal", "offset": 0}]}, [b""])
        path = f"/workspaces/{self._workspace_id}/runs/{self._run_id}/report"
        deadline = time.monotonic() + seconds
        while self._client.call("POST", path, data=ask)["positions"]["journal:journal"] < size:
            if time.monotonic() > deadline:
                raise Unavailable(f"What run {self._run_id} logged had not arrived after {seconds:g} s.")
            time.sleep(0.05)


class ProcessRecorder(Recorder):
    """Outside a job: this process ships, from one thread for all its runs."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, stream: str, owner: bool) -> None:
        super().__init__(_make_folder(run_id if owner else f"{run_id}.{stream}"))
        self.run_id = run_id
        self.owner = owner
        self.shipper = Shipper(client, workspace_id, run_id)
        self.shipper.follow_journal(stream, self.journal.path)
        self.using = threading.Lock()
        self.last_report = time.monotonic()
        self.finish: Callable[[], None] | None = None  # called when the interpreter ends and the run has not
        pump.add(self)

    def record(self, kind: str, name: str, value: Any, step: int | None = None, run_id: str = "") -> None:
        super().record(kind, name, value, step, run_id)
        pump.news.set()

    def ship(self, patience: float = 0.0) -> None:
        beat = self.owner and time.monotonic() - self.last_report > _BEAT_EVERY
        if not (beat or self.shipper.behind() or self._spooled()):
            return
        with self.using:
            self._send_spooled()
            self.shipper.report(patience=patience)
            self.last_report = time.monotonic()

    def close(self, header: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> dict[str, Any]:
        """The last report: everything, then how the run ended."""
        with self.using:
            self._send_spooled()
            reply = self.shipper.report(header, files, final=True)
        pump.drop(self)
        self.journal.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return reply

    def flush(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.shipper.behind() or self._spooled():
            self.ship(patience=max(0.0, deadline - time.monotonic()))
            if time.monotonic() > deadline:
                raise Unavailable(f"What run {self.run_id} logged had not arrived after {seconds:g} s.")

    def _spooled(self) -> bool:
        return os.path.isdir(os.path.join(self.folder, "files"))

    def _send_spooled(self) -> None:
        spool = os.path.join(self.folder, "files")
        for where, _, names in os.walk(spool):
            for leaf in sorted(names):
                path = os.path.join(where, leaf)
                if not leaf.startswith("."):
                    self.shipper.put_file(os.path.relpath(path, spool).replace(os.sep, "/"), path)
                    os.remove(path)


class Pump:
    """The quiet thread. A server that is away makes it wait, never the program."""

    def __init__(self) -> None:
        self.news = threading.Event()
        self._recorders: list[ProcessRecorder] = []
        self._changing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def add(self, recorder: ProcessRecorder) -> None:
        with self._changing:
            self._recorders.append(recorder)
            if self._thread is None or self._pid != os.getpid():
                if self._pid == 0:
                    atexit.register(self._at_exit)
                self._pid = os.getpid()
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
                except (AzureMLException, ServiceException, OSError):
                    self.news.set()  # the journal keeps it: try again

    def _at_exit(self) -> None:
        if self._pid != os.getpid():
            return  # a forked child: the runs are its parent's
        for recorder in list(self._recorders):
            try:
                if recorder.finish is not None:
                    recorder.finish()
                else:
                    recorder.flush(30.0)
                    shutil.rmtree(recorder.folder, ignore_errors=True)
            except (AzureMLException, ServiceException, OSError) as error:
                said = getattr(error, "message", error)
                print(
                    f"Lapis: what run {recorder.run_id} logged is kept in {recorder.folder}: {said}",
                    file=sys.stderr,
                )


pump = Pump()


def owner_of(recorder_folder: str) -> dict[str, Any]:
    """Which process an interactive run lives in, so that the server can tell when it is gone."""
    import socket

    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": started(pid), "folder": recorder_folder}


def planned_folder(run_id: str) -> str:
    return os.path.join(settings_module.load().home, "interactive", run_id)


def _make_folder(name: str) -> str:
    folder = planned_folder(name)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise UserErrorException(
            f"Metrics are kept in {folder} until they are sent, and that folder cannot be made ({error.strerror}). "
            "Set LAPIS_HOME to a folder that can be written."
        ) from error
    return folder
