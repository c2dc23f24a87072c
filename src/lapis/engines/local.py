"""The local engine: one agent process on this machine for each run, which outlives the server that started it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import lapis
from lapis.engines import processes
from lapis.engines.base import Can, Handle, JobSpec, JobState
from lapis.sdk import mounts

# Without site-packages: an agent needs the standard library only.
_NURSERY = "import sys; sys.path[0] = sys.argv.pop(1); from lapis.agent.nursery import main; main()"


class LocalEngine:
    can: ClassVar[frozenset[Can]] = frozenset()

    def __init__(self, root: str) -> None:
        self._root = root
        self._nursery: subprocess.Popen[bytes] | None = None
        os.makedirs(root, exist_ok=True)

    def launch(self, job: JobSpec) -> Handle:
        folder = os.path.join(self._root, job.id)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        known = _read(os.path.join(folder, "agent.json"))
        if known is not None and processes.alive(known["pid"], known["started"]):
            return known
        _write(os.path.join(folder, "job.json"), dict(job.body, folder=folder))
        pid = self._bear(folder)
        handle = {"job": job.id, "pid": pid, "started": processes.started(pid), "folder": folder}
        _write(os.path.join(folder, "agent.json"), handle)
        return handle

    def _bear(self, folder: str) -> int:
        """A new agent for `folder`, from the nursery; a nursery that was killed is replaced."""
        for fresh in (False, True):
            if self._nursery is None or fresh:
                self.close()
                self._nursery = _start_nursery()
            assert self._nursery.stdin is not None and self._nursery.stdout is not None
            try:
                self._nursery.stdin.write(os.fsencode(folder) + b"\n")
                answer = self._nursery.stdout.readline()
            except BrokenPipeError:
                continue
            if answer:
                return int(answer)
        raise OSError("the process that starts agents ended at once")

    def warm(self) -> None:
        mounts.clear_below(self._root)
        if self._nursery is None:
            self._nursery = _start_nursery()

    def close(self) -> None:
        """Let the nursery go; the agents it bore stay."""
        if self._nursery is None:
            return
        assert self._nursery.stdin is not None and self._nursery.stdout is not None
        self._nursery.stdin.close()
        self._nursery.stdout.close()
        self._nursery.wait()
        self._nursery = None

    def poll(self, handles: Sequence[Handle]) -> list[JobState]:
        return [
            JobState.ALIVE if processes.alive(handle["pid"], handle["started"]) else JobState.LOST for handle in handles
        ]

    def stop(self, handle: Handle, *, hard: bool = False) -> None:
        processes.signal_process(handle["pid"], handle["started"], signal.SIGKILL if hard else signal.SIGTERM)
        if not hard:
            return
        script = _read(os.path.join(handle["folder"], "process.json"))
        living = [p["pid"] for p in (script or {}).values() if processes.alive(p["pid"], p["started"])]
        processes.end_tree(f"AZUREML_RUN_ID={handle['job']}", living, grace=0.0)
        mounts.detach_below(handle["folder"])

    def explain(self, handle: Handle) -> str:
        try:
            with open(os.path.join(handle["folder"], "agent.log"), errors="replace") as file:
                return file.read()[-2000:].strip()
        except FileNotFoundError:
            return ""

    def forget(self, job_id: str) -> None:
        mounts.detach_below(os.path.join(self._root, job_id))
        shutil.rmtree(os.path.join(self._root, job_id), ignore_errors=True)


def _start_nursery() -> subprocess.Popen[bytes]:
    source = os.path.dirname(os.path.dirname(os.path.abspath(lapis.__file__)))
    return subprocess.Popen(
        [sys.executable, "-S", "-c", _NURSERY, source],
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,  # so that it and its agents outlive us, and Ctrl-C in a terminal passes them by
    )


def _environment() -> dict[str, str]:
    """Ours, without the user's token: an agent and its script have tokens of their own."""
    return {key: value for key, value in os.environ.items() if key not in ("LAPIS_TOKEN", "PYTHONPATH")}


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path) as file:
            found = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(path: str, value: object) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file)
    os.replace(temporary, path)
