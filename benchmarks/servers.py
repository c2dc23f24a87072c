"""Servers that are measured: started as processes of their own, waited for, and ended."""

from __future__ import annotations

import http.server
import json
import os
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil


@contextmanager
def running(command: list[str], folder: Path, more: dict[str, str]) -> Iterator[psutil.Process]:
    with open(folder / "log.txt", "w") as log:
        process = psutil.Popen(command, cwd=folder, env={**os.environ, **more}, stdout=log, stderr=log)
        try:
            yield process
        finally:
            family = process.children(recursive=True)
            process.terminate()
            _, alive = psutil.wait_procs([process, *family], timeout=5)
            for each in alive:
                each.kill()


def port_of(process: psutil.Process, ready: Callable[[], int | None]) -> int:
    """What `ready` gives, once it is something."""
    deadline = time.monotonic() + 120
    while True:
        port = ready()
        if port is not None:
            return port
        assert process.is_running() and time.monotonic() < deadline, process.cmdline()
        time.sleep(0.05)


def ready_port(state: Path) -> int | None:
    if not state.exists():
        return None
    said = json.loads(state.read_text())
    return int(said["port"]) if said["state"] == "ready" else None


def answers(port: int) -> int | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
            return port
    except OSError:
        return None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def cpu_of(process: psutil.Process) -> float:
    used = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in used)


class FilesHandler(http.server.BaseHTTPRequestHandler):
    """Gives the files of `folder`, whole or a part of one; how fast, a subclass says with `send`."""

    folder = ""
    delay = 0.0  # seconds before each answer

    def send(self, path: str, offset: int, left: int) -> None:
        raise NotImplementedError

    def do_HEAD(self) -> None:
        self.do_GET(body=False)

    def do_GET(self, body: bool = True) -> None:
        time.sleep(self.delay)
        path = os.path.join(self.folder, os.path.basename(self.path))
        size, asked = os.path.getsize(path), self.headers.get("Range")
        begin, _, end = (asked or "bytes=0-").removeprefix("bytes=").partition("-")
        first, last = int(begin), int(end) if end else size - 1
        self.send_response(206 if asked else 200)
        self.send_header("ETag", f'"{size}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        if body:
            self.send(path, first, last - first + 1)

    def log_message(self, *_: Any) -> None:
        pass
