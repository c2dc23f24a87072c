"""A service of the tests' own: `python -m lapis.serving` on a folder, and clients that say exactly what they mean."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lapis
from lapis.testing import until

SOURCE = os.pathsep.join([str(Path(lapis.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])


class Service:
    """One front, started on `folder`."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder = folder
        self.file = folder / "service.json"
        self.describe(description)
        self.description = description
        with open(folder / "log.txt", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lapis.serving", str(self.file)],
                env={**os.environ, "PYTHONPATH": SOURCE},
                stdout=log,
                stderr=log,
            )

    def describe(self, description: dict[str, Any]) -> None:
        beside = self.folder / "service.json.new"
        beside.write_text(json.dumps(description))
        os.replace(beside, self.file)

    @property
    def state(self) -> dict[str, Any]:
        path = self.folder / "state.json"
        return dict(json.loads(path.read_text())) if path.exists() else {"state": "none"}

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")

    @property
    def port(self) -> int:
        return int(self.state["port"])

    @property
    def workers(self) -> list[int]:
        return [each["pid"] for each in self.state["replicas"] if each["state"] == "ready"]

    def until_ready(self) -> Service:
        until(lambda: self.state["state"] == "ready" or self.process.poll() is not None, lambda: self.log)
        assert self.process.poll() is None, self.log
        return self

    def ask(
        self, body: Any = b"", path: str = "/score", method: str = "POST", headers: dict[str, str] | None = None
    ) -> Answer:
        with self.connection() as connection:
            return ask(connection, body, path, method, headers)

    @contextmanager
    def connection(self) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def socket(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connected:
            yield connected

    def raw(self, content: bytes) -> bytes:
        """All that comes back until the front closes."""
        with self.socket() as connected:
            connected.sendall(content)
            return read_all(connected)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(15)
        finally:
            self.process.kill()
            self.process.wait()


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.body = answer.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])


def ask(
    connection: http.client.HTTPConnection,
    body: Any = b"",
    path: str = "/score",
    method: str = "POST",
    headers: dict[str, str] | None = None,
) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, content, {"Content-Type": "application/json", **(headers or {})})
    return Answer(connection.getresponse())


def described(folder: Path, script: str | None = None, **more: Any) -> dict[str, Any]:
    """A description for a front, with an entry script written into the folder."""
    if script is not None:
        (folder / "score.py").write_text(script)
    base: dict[str, Any] = {
        "service": {"id": "s1", "name": "digits", "revision": 1},
        "listen": {"host": "127.0.0.1", "port": 0},
        "worker": {
            "argv": [sys.executable, "-m", "lapis.scoring.worker"],
            "cwd": str(folder),
            "environ": {"PYTHONPATH": SOURCE},
        },
        "load": {"script": str(folder / "score.py")},
        "report": {"file": str(folder / "state.json")},
    }
    for key, value in more.items():
        base[key] = {**base[key], **value} if isinstance(value, dict) and key in base and key != "load" else value
    return base


@contextmanager
def serving(folder: Path, script: str | None = None, **more: Any) -> Iterator[Service]:
    folder.mkdir(exist_ok=True)
    service = Service(folder, described(folder, script, **more))
    try:
        yield service.until_ready()
    except BaseException:
        service.process.kill()
        raise
    finally:
        service.stop()


def read_all(connected: socket.socket) -> bytes:
    found = b""
    try:
        while True:
            piece = connected.recv(65536)
            if not piece:
                return found
            found += piece
    except ConnectionResetError:
        return found
