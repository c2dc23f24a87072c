"""Sends errands to a process that has fsspec: for the agent, which runs without packages, and for the server.

The process has no part in the caller's memory, imports or time: what hangs there is ended here.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from lapis.errors import UserErrorException, from_wire
from lapis.machine.own_python import own_python

Progress = Callable[[int, int, int], None]


class Helper:
    """Starts the process at the first errand, and keeps it for the next ones until close()."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints = tempfile.TemporaryFile()

    def ask(
        self,
        request: Mapping[str, Any],
        *,
        progress: Progress = lambda done, files, size: None,
        look: Callable[[], None] = lambda: None,
        seconds: float | None = None,
    ) -> Any:
        """The result of an errand; its error is raised here. `look` is called about every second and may raise."""
        try:
            said = self._talk(request, progress, look, seconds)
        except BaseException:
            self._end()  # whatever it is doing, nobody waits for it any more
            raise
        if "error" in said:
            raise from_wire(said, 400)
        return said["result"]

    def close(self) -> None:
        self._end()
        self._complaints.close()

    def _talk(
        self, request: Mapping[str, Any], progress: Progress, look: Callable[[], None], seconds: float | None
    ) -> dict[str, Any]:
        if self._process is None:
            self._process = start(self._complaints)
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # then it says nothing either, which is told below
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        deadline = None if seconds is None else time.monotonic() + seconds
        heard = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                look()
                if deadline is not None and time.monotonic() > deadline:
                    raise UserErrorException(f"The object store has not answered within {seconds:.0f} s.")
                if not selector.select(1.0):
                    continue
                fresh = os.read(self._process.stdout.fileno(), 1 << 16)
                if not fresh:
                    raise UserErrorException(f"The process that reads object stores ended early.{self._last_words()}")
                *lines, heard = (heard + fresh).split(b"\n")
                for line in lines:
                    said: dict[str, Any] = json.loads(line)
                    if "progress" not in said:
                        return said
                    progress(*said["progress"])

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes its pipes, and waits for it
                pass
            self._process = None

    def _last_words(self) -> str:
        """The end of a traceback names the error; what stands above it may hold more than should be shown."""
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        return f" {lines[-1].partition(':')[0]}." if lines else ""


def ask_once(request: Mapping[str, Any], seconds: float) -> Any:
    """One errand, by a process of its own."""
    with contextlib.closing(Helper()) as helper:
        return helper.ask(request, seconds=seconds)


def start(complaints: Any) -> subprocess.Popen[bytes]:
    command, environment = own_python("lapis.object_stores.fetch")
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, env=environment)
