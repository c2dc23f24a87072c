"""Runs a command to its end: its lines are told as they come, and it is ended when it is no longer wanted."""

from __future__ import annotations

import os
import selectors
import subprocess
from dataclasses import dataclass
from typing import Callable, Mapping, Sequence

from lapis.machine import processes

LOOK_EVERY = 0.1  # seconds between two questions whether it is still wanted
END_GRACE = 2.0  # seconds to leave in order

Tell = Callable[[str], None]  # takes one line for the user
Canceled = Callable[[], bool]


class Stopped(Exception):
    """It was canceled; nothing half done counts as done."""


@dataclass(frozen=True)
class Said:
    code: int
    output: str
    complaints: str  # what it wrote to stderr

    @property
    def ok(self) -> bool:
        return self.code == 0


def never() -> bool:
    return False


def silent(line: str) -> None:
    pass


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    tell: Tell = silent,
    canceled: Canceled = never,
    keep_open: Sequence[int] = (),
) -> Said:
    """Run `argv` in `folder`; each line of its stderr goes to `tell`. Raises Stopped when `canceled` says so.

    The files in `keep_open` stay open as long as the command or anything it started lives: a lock that guards its
    work holds even if we are killed.
    """
    process = subprocess.Popen(
        list(argv),
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=tuple(keep_open),
        start_new_session=True,  # Ctrl-C is ours to take; and its whole session can be ended
    )
    with process:
        try:
            output, complaints = _read(process, tell, canceled)
        finally:
            if process.poll() is None:
                processes.end_tree("", [process.pid], END_GRACE)
    return Said(process.returncode, output, complaints)


def _read(process: subprocess.Popen[bytes], tell: Tell, canceled: Canceled) -> tuple[str, str]:
    assert process.stdout is not None and process.stderr is not None
    output, complaints, told = bytearray(), bytearray(), 0
    with selectors.DefaultSelector() as streams:
        streams.register(process.stdout, selectors.EVENT_READ, output)
        streams.register(process.stderr, selectors.EVENT_READ, complaints)
        while streams.get_map():
            if canceled():
                raise Stopped(f"{os.path.basename(str(process.args[0]))} was canceled.")  # type: ignore[index]
            for key, _ in streams.select(LOOK_EVERY):
                piece = os.read(key.fd, 65536)
                key.data.extend(piece)
                if not piece:
                    streams.unregister(key.fileobj)
            told += _tell_lines(complaints, told, tell)
    process.wait()
    tail = complaints[told:].decode("utf-8", "replace")
    if tail:
        tell(tail)
    return output.decode("utf-8", "replace"), complaints.decode("utf-8", "replace")


def _tell_lines(text: bytearray, told: int, tell: Tell) -> int:
    """Tell the whole lines after `told`; how many bytes that were."""
    end = text.rfind(b"\n", told) + 1
    if not end:
        return 0
    for line in text[told:end].decode("utf-8", "replace").splitlines():
        tell(line)
    return end - told
