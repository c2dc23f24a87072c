"""A way to the server that loses replies: of every request that may change something, the first one."""

from __future__ import annotations

import hashlib
import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Lossy(ThreadingHTTPServer):
    """Passes requests on to `address`, HOST:PORT, and hears the whole reply before it loses it."""

    daemon_threads = True

    def __init__(self, address: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.to = address
        self.lost: dict[str, str] = {}  # what was asked, by the digest of the request
        self.guard = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def loses(self, method: str, path: str, body: bytes) -> bool:
        digest = hashlib.sha256(f"{method} {path}\n".encode() + body).hexdigest()
        with self.guard:
            fresh = method != "GET" and digest not in self.lost
            if fresh:
                self.lost[digest] = f"{method} {path}"
        return fresh


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Lossy

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")}
        server = http.client.HTTPConnection(self.server.to, timeout=120)
        server.request(self.command, self.path, body, kept)
        answer = server.getresponse()
        content = answer.read()
        server.close()
        if self.server.loses(self.command, self.path, body):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(answer.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def lossy(url: str) -> Iterator[Lossy]:
    with Lossy(url.partition("://")[2]) as way:
        threading.Thread(target=way.serve_forever, daemon=True).start()
        yield way
        way.shutdown()
