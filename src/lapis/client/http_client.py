"""The one way to the server: one generic call, a kept connection, and patience while a server restarts."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from typing import Any, Callable, Iterable, Mapping

from lapis.client.wire import Answer, Broken, Wire
from lapis.errors import Unavailable, UserErrorException, from_wire
from lapis.machine import processes

API = "/api/v1"
_UNSAFE = re.compile(r"[^\x21-\x7e]")  # would end the word or the line that it stands in, or cannot stand there at all


class Endpoint:
    """Where the server is and how to get in. `find(again)` may look anew, or start one, when it did not answer."""

    patience = 5.0  # seconds to go on trying while nobody answers
    by_address = True  # a config.json that leads here has to name it

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url.rstrip("/"), token

    def find(self, again: bool = False) -> tuple[str, str]:
        return self.url, self.token

    def confirm(self, url: str) -> None:
        """Before a connection is made: an OSError where somebody else may have taken the place of our server."""

    def door(self) -> str | None:
        """Where files can be handed over, if the server is on this machine (client/handing_over.py)."""
        return None

    def describe(self) -> str:
        return f"The server at {self.url} does not answer. Is it running, and is that its address?"


class JobEndpoint(Endpoint):
    """Inside a job: the address it was started with, or where the server went since, as its file says."""

    patience = 90.0
    by_address = False

    def __init__(self, url: str, token: str, address_file: str | None) -> None:
        super().__init__(url, token)
        self._address_file = address_file

    def find(self, again: bool = False) -> tuple[str, str]:
        about = self._about() if again else None
        if about is not None:
            self.url = about["url"]
        return self.url, self.token

    def confirm(self, url: str) -> None:
        about = self._about()
        if about is not None and not (about["url"] == url and vouched(about)):
            raise ConnectionRefusedError("The server that listened there has left.")

    def door(self) -> str | None:
        return (self._about() or {}).get("door")

    def _about(self) -> dict[str, Any] | None:
        """What the server wrote about itself; None if that cannot be seen from here, or it is on its way back."""
        try:
            with open(self._address_file or "") as file:
                about: dict[str, Any] = json.load(file)
            return about if "url" in about else None
        except (OSError, ValueError):
            return None

    def describe(self) -> str:
        return f"The server at {self.url} has not answered for {self.patience:.0f} s."


def job_endpoint() -> JobEndpoint | None:
    """The way to the server for a script of a run; None outside of one."""
    url, token = os.environ.get("AZUREML_SERVICE_ENDPOINT"), os.environ.get("AZUREML_RUN_TOKEN")
    if not url or not token or "AZUREML_RUN_ID" not in os.environ:
        return None
    return JobEndpoint(url, token, os.environ.get("LAPIS_ADDRESS_FILE"))


def vouched(about: Mapping[str, Any]) -> bool:
    """Whether the server that wrote this of itself lives, and so has its port still. A pid used again is not it.

    From another machine, or from a container with process numbers of its own, nobody can tell.
    """
    if about.get("seen_from") not in (None, processes.seen_from()):
        return True
    there = processes.started(int(about["pid"]))
    return there is not None and about.get("started", there) == there


class Client:
    """Safe to share between threads and to use after a fork: every thread and process has its own connection."""

    def __init__(self, endpoint: Endpoint, timeout: float = 60.0) -> None:
        self.endpoint = endpoint
        self._timeout = timeout
        self._local = threading.local()

    def __deepcopy__(self, memo: Any) -> Client:
        return self  # a copy of a configuration that holds data speaks to the same server

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> Any:
        """One request; the parsed answer. An error of the server is raised as the same class here.

        Each has an identity of its own, and the server answers one that comes again as it did the first time: a lost
        connection is simply tried anew.
        """
        answer, content = self._open(method, path, body, query, data, timeout, patience)
        parsed = json.loads(content) if content else None
        if answer.status >= 300:
            raise _raised(parsed, answer.status)
        return parsed

    def download(self, path: str, write: Callable[[bytes], Any], query: Mapping[str, Any] | None = None) -> None:
        """Hand the answer's body to `write`, piece by piece."""
        answer, _ = self._open("GET", path, None, query, None, None, None, read=False)
        if answer.status >= 300:
            raise _raised(_parsed(answer.read()), answer.status)
        try:
            for piece in answer.pieces():
                write(piece)
        except Broken as cut:
            self.close()
            raise Unavailable("The connection to the server was lost in the middle of a download. Try again.") from cut
        except BaseException:
            self.close()  # nobody wants the rest
            raise

    def hand_over(self, method: str, path: str, descriptor: int, size: int) -> Any:
        """A request whose body, or the place for whose answer, is an open file that a server of this machine copies.

        None where that is not possible: then it is to be sent, or read.
        """
        from lapis.client.handing_over import LEAST, TICKET, handed_over

        door = self.endpoint.door() if size >= LEAST else None
        if door is None:
            return None
        try:
            with handed_over(door, descriptor) as ticket:
                header, seconds = f"{TICKET}: {ticket}\r\n", 600.0 + size / 20e6
                answer, content = self._open(method, path, None, None, None, seconds, None, header=header)
        except OSError:
            return None
        if answer.status >= 300:
            raise _raised(_parsed(content), answer.status)
        taken = _parsed(content)
        return taken if taken.get("taken", True) else None

    def upload(self, path: str, chunks: Callable[[], Iterable[bytes]], size: int) -> Any:
        """Send what `chunks()` yields as one body of `size` bytes, without holding it in memory."""
        answer, content = self._open("PUT", path, None, None, (chunks, size), 600.0, None)
        if answer.status >= 300:
            raise _raised(_parsed(content), answer.status)
        return _parsed(content)

    def close(self) -> None:
        wire = getattr(self._local, "wire", None)
        if wire is not None:
            wire.close()
            self._local.wire = None

    def _open(
        self, method: str, path: str, body: Any, query: Any, data: Any, timeout: Any, patience: Any, read: bool = True,
        header: str = "",
    ) -> tuple[Answer, bytes]:  # fmt: skip
        """The answer, with its body if `read`. Tried anew until it came whole, or patience is at an end."""
        if body is not None:
            data = json.dumps(body, separators=(",", ":")).encode()
        target = API + path + _query(query)
        if method != "GET":
            header += f"Lapis-Request: {os.urandom(16).hex()}\r\n"  # its identity, the same when asked again
        deadline = time.monotonic() + (self.endpoint.patience if patience is None else patience)
        pause, again = 0.02, False
        while True:
            reused = False
            try:
                url, token = self.endpoint.find(again)
                wire = self._wire(url)
                reused = wire.connected
                answer = self._once(
                    wire, method, target, token, header, data, body is not None, timeout or self._timeout
                )
                return answer, answer.read() if read else b""
            except OSError as failure:
                first, again = not again, True
                self.close()
                if first and reused:
                    continue  # a kept connection that the server had closed: nothing was amiss
                if time.monotonic() + pause > deadline:
                    raise Unavailable(f"{self.endpoint.describe()} ({failure or type(failure).__name__})") from failure
                time.sleep(pause)
                pause = min(pause * 2, 2.0)

    def _once(
        self, wire: Wire, method: str, target: str, token: str, header: str, data: Any, is_json: bool, timeout: float
    ) -> Answer:
        if _UNSAFE.search(target + token):
            raise UserErrorException(
                f"{method} {target!r} cannot be asked for: a name in it, or the token, has a blank or a character that "
                "is not ASCII."
            )
        kind = "json" if is_json else "octet-stream"
        headers = f"Authorization: Bearer {token}\r\nContent-Type: application/{kind}\r\n{header}"
        if isinstance(data, tuple):
            return wire.ask(method, target, headers, data[0](), data[1], timeout)
        return wire.ask(method, target, headers, data or b"", len(data or b""), timeout)

    def _wire(self, url: str) -> Wire:
        """The kept one, if nothing is left to read there: it would be taken for the next answer."""
        local = self._local
        kept: Any = getattr(local, "wire", None)
        if kept is not None and kept.free and kept.url == url and local.pid == os.getpid():
            return kept  # type: ignore[no-any-return]
        self.close()
        self.endpoint.confirm(url)
        local.wire, local.pid = Wire(url), os.getpid()
        return local.wire  # type: ignore[no-any-return]


def _query(query: Mapping[str, Any] | None) -> str:
    given = {key: value for key, value in (query or {}).items() if value is not None}
    if not given:
        return ""
    from urllib.parse import urlencode

    plain = {k: str(v).lower() if isinstance(v, bool) else v for k, v in given.items()}
    return "?" + urlencode(plain, doseq=True)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _raised(body: Any, status: int) -> Exception:
    """The server's error. It may repeat what a job wrote, and is about to be printed on somebody's terminal."""
    from lapis.domain.terminal_escapes import plain

    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        error["message"] = plain(error["message"])
    return from_wire(body, status)


def quoted(name: str) -> str:
    """A file name as a part of a path."""
    from urllib.parse import quote

    return quote(name, safe="/")
