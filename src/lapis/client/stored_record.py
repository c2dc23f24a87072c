"""Which files of a run were collected before its end, by name: lines in its folder, for whoever collects next.

A stored file of the run that is not among them was uploaded by somebody, and is not ours to replace.
"""

from __future__ import annotations

import contextlib
import json
import os

_NAME = "stored.jsonl"


def add(folder: str, name: str, digest: str) -> None:
    """In one write, as agent and script both do. Without room there is no record, and the file counts as uploaded."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    with contextlib.suppress(OSError):
        descriptor = os.open(os.path.join(folder, _NAME), flags, 0o600)
        try:
            os.write(descriptor, (json.dumps([name, digest]) + "\n").encode())
        finally:
            os.close(descriptor)


def read(folder: str) -> dict[str, str]:
    found: dict[str, str] = {}
    with contextlib.suppress(OSError), open(os.path.join(folder, _NAME), "rb") as file:
        for line in file:
            with contextlib.suppress(ValueError):
                name, digest = json.loads(line)
                found[name] = digest
    return found
