"""The one way to the server: one generic call, a kept connection, and patience while a server restarts."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping

from lapis.errors import Unavailable, UserErrorException, from_wire

if TYPE_CHECKING:
    import http.client

API = "/api/v1"
_UNSAFE = re.compile(r"[^\x21-\x7e]")  # would end the word or the line that it stands in, or cannot stand there at all


class Endpoint:
    """Where the server is and how to get in. `find(again)` may look anew, or start one, when it did not answer."""

    patience = 5.0  # seconds to go on trying while nobody answers

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url.rstrip("/"), token

    def find(self, again: bool = False) -> tuple[str, str]:
        return self.url, self.token

    def describe(self) -> str:
        return f"The server at {self.url} does not answer. Is it running, and is the address in config.json right?"


class JobEndpoint(Endpoint):
    """Inside a job: the address it was started with, or where the server went since, as its file says."""

    patience = 90.0

    def __init__(self, url: str, token: str, address_file: str | None) -> None:
        super().__init__(url, token)
        self._address_file = address_file

    def find(self, again: bool = False) -> tuple[str, str]:
        if again and self._address_file:
            try:
                with open(self._address_file) as file:
                    self.url = json.load(file)["url"]
            except (OSError, ValueError, KeyError):
                pass  # it is on its way back
        return self.url, self.token

    def describe(self) -> str:
        return f"The server at {self.url} has not answered for {self.patience:.0f} s."


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

        Every route may be asked again without harm, so a lost connection is simply tried anew.
        """
        response, content = self._open(method, path, body, query, data, timeout, patience)
        parsed = json.loads(content) if content else None
        if response.status >= 400:
            raise from_wire(parsed, response.status)
        return parsed

    def download(self, path: str, write: Callable[[bytes], Any], query: Mapping[str, Any] | None = None) -> None:
        """Hand the answer's body to `write`, piece by piece."""
        response, _ = self._open("GET", path, None, query, None, None, None, read=False)
        if response.status >= 400:
            content = response.read()
            raise from_wire(_parsed(content), response.status)
        from http.client import IncompleteRead

        try:
            for chunk in iter(lambda: response.read(1 << 20), b""):
                write(chunk)
        except IncompleteRead as cut:
            self.close()
            raise Unavailable("The connection to the server was lost in the middle of a download. Try again.") from cut
        except BaseException:
            self.close()  # what is left of the answer must not be read as the next one
            raise

    def upload(self, path: str, chunks: Callable[[], Iterable[bytes]], size: int) -> Any:
        """Send what `chunks()` yields as one body of `size` bytes, without holding it in memory."""
        response, content = self._open("PUT", path, None, None, (chunks, size), 600.0, None)
        if response.status >= 400:
            raise from_wire(_parsed(content), response.status)
        return _parsed(content)

    def close(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _open(
        self, method: str, path: str, body: Any, query: Any, data: Any, timeout: Any, patience: Any, read: bool = True
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """The answer, with its body if `read`. Tried anew until it came whole, or patience is at an end."""
        import http.client

        if body is not None:
            data = json.dumps(body, separators=(",", ":")).encode()
        target = API + path + _query(query)
        deadline = time.monotonic() + (self.endpoint.patience if patience is None else patience)
        pause, again = 0.02, False
        while True:
            try:
                response = self._once(method, target, data, body is not None, timeout or self._timeout, again)
                return response, response.read() if read else b""
            except (OSError, http.client.HTTPException) as failure:
                fresh_try = getattr(self._local, "reused", False) and not again
                self.close()
                again = True
                if fresh_try:
                    continue  # a kept connection that the server had closed: nothing was amiss
                if time.monotonic() + pause > deadline:
                    raise Unavailable(f"{self.endpoint.describe()} ({failure or type(failure).__name__})") from failure
                time.sleep(pause)
                pause = min(pause * 2, 2.0)

    def _once(
        self, method: str, target: str, data: Any, is_json: bool, timeout: float, again: bool
    ) -> http.client.HTTPResponse:
        url, token = self.endpoint.find(again)
        connection = self._connection(url)
        if _UNSAFE.search(target + token):
            raise UserErrorException(
                f"{method} {target!r} cannot be asked for: a name in it, or the token, has a blank or a character that "
                "is not ASCII."
            )
        kind = "json" if is_json else "octet-stream"
        streamed = isinstance(data, tuple)
        size = data[1] if streamed else len(data or b"")
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: {url.partition('://')[2]}\r\nAuthorization: Bearer {token}\r\n"
            f"Accept-Encoding: identity\r\nContent-Type: application/{kind}\r\nContent-Length: {size}\r\n\r\n"
        ).encode("latin-1")
        connection.timeout = timeout
        if connection.sock is not None and connection.sock.gettimeout() != timeout:
            connection.sock.settimeout(timeout)
        self._local.response = None
        connection.send(head if streamed else head + (data or b""))  # in one piece: each costs both sides a wake-up
        if streamed:
            connection.send(data[0]())
        self._local.response = response = connection.response_class(connection.sock, method=method)
        response.begin()
        if response.will_close:
            connection.close()  # the response holds on to what it still has to read
        return response

    def _connection(self, url: str) -> http.client.HTTPConnection:
        """The kept one, if its last answer was read to the end: what is left would be taken for the next one."""
        local = self._local
        kept: Any = getattr(local, "connection", None)
        answered = kept is not None and local.response is not None and local.response.isclosed()
        if answered and local.url == url and local.pid == os.getpid():
            local.reused = kept.sock is not None
            return kept  # type: ignore[no-any-return]
        self.close()
        local.connection = _connection_to(url)
        local.url, local.pid, local.reused, local.response = url, os.getpid(), False, None
        return local.connection  # type: ignore[no-any-return]


def _connection_to(url: str) -> http.client.HTTPConnection:
    import http.client
    import socket

    scheme, _, address = url.partition("://")
    base: Any = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection

    class Connection(base):  # type: ignore[misc]
        response_class = _quick_response()

        def connect(self) -> None:
            """Send at once: where a request is more than one write, Nagle would wait between them."""
            super().connect()
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def __del__(self) -> None:
            self.close()  # a client that is forgotten leaves no open socket behind

    made: http.client.HTTPConnection = Connection(address)
    return made


_response: Any = None


def _quick_response() -> Any:
    """HTTPResponse with headers read line by line: the e-mail parser behind it costs more than a request of ours."""
    global _response
    if _response is not None:
        return _response
    import http.client

    class Headers(dict):  # type: ignore[type-arg]
        def get(self, name: str, default: Any = None) -> Any:
            return super().get(name.lower(), default)

    class Response(http.client.HTTPResponse):
        def begin(self) -> None:
            if self.headers is not None:
                return
            version, self.code, reason = self._read_status()
            if version != "HTTP/1.1" or self.code < 200:
                raise http.client.UnknownProtocol(version)
            self.status, self.reason, self.version = self.code, reason.strip(), 11
            headers = Headers()
            while True:
                line = self.fp.readline(65537)
                if line in (b"\r\n", b"\n"):
                    break
                if not line or len(line) > 65536:
                    raise http.client.HTTPException("The answer's headers cannot be read.")
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.lower()] = value.strip()
            self.headers = self.msg = headers
            self.chunked = headers.get("transfer-encoding", "").lower() == "chunked"
            self.chunk_left = None
            self.will_close = headers.get("connection", "").lower() == "close"
            length = headers.get("content-length")
            self.length = int(length) if length is not None and not self.chunked else None
            if self.code in (204, 304) or self._method == "HEAD":
                self.length = 0
            if self.length is None and not self.chunked:
                self.will_close = True

    _response = Response
    return Response


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


def quoted(name: str) -> str:
    """A file name as a part of a path."""
    from urllib.parse import quote

    return quote(name, safe="/")
