"""A proxy on loopback through which tools fetch packages: it connects only where the rule of addresses lets it.

uv, conda and git follow redirects and links of an index themselves. Here each of their connections is asked about,
after DNS, and made to the very address that was asked about. It is there only while the server has such a rule.
"""

from __future__ import annotations

import base64
import http.client
import secrets
import selectors
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from lapis.domain.addresses import Rule, refusal

_CHUNK = 1 << 16
_TIMEOUT = 60.0
_OF_ONE_HOP = ("proxy-authorization", "proxy-connection", "connection", "keep-alive", "te", "upgrade")
Proxied = AbstractContextManager[dict[str, str]]
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
VARIABLES = [each for name in (*_PROXIES, "NO_PROXY") for each in (name, name.lower())]


def is_behind_another(environ: Mapping[str, str]) -> bool:
    """Whether the user has a proxy, which alone reaches the network: then what a definition names is asked about."""
    return any(environ.get(name) or environ.get(name.lower()) for name in _PROXIES)


@contextmanager
def guarding(rule: Rule) -> Iterator[dict[str, str]]:
    """Variables that lead tools through the proxy, for as long as the block lasts."""
    password = secrets.token_urlsafe(16)
    server = _Server(rule, password)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        address = f"http://lapis:{password}@127.0.0.1:{server.server_address[1]}"
        yield {**{each: address for name in _PROXIES for each in (name, name.lower())}, "NO_PROXY": "", "no_proxy": ""}
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, rule: Rule, password: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rule = rule
        self.password = "Basic " + base64.b64encode(f"lapis:{password}".encode()).decode()

    def connected(self, host: str, port: int) -> socket.socket:
        """Raises PermissionError with the reason, or what connecting raises."""
        found = [str(each[4][0]) for each in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)]
        reason = refusal(self.rule, host, found)
        if reason is not None:
            raise PermissionError(f"Nothing is fetched from {host}: {reason}.")
        last: OSError | None = None
        for place in found:
            try:
                return socket.create_connection((place, port), _TIMEOUT)
            except OSError as error:
                last = error
        raise last or OSError(f"{host} has no address")


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _TIMEOUT

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        remote = self._open(host.strip("[]"), port)
        if remote is None:
            return
        with closing(remote):
            self.send_response(200, "Connection established")
            self.end_headers()
            _pass_on(self.connection, remote)
        self.close_connection = True

    def _forward(self) -> None:
        """A request to an address without TLS."""
        asked = urlsplit(self.path)
        remote = self._open(asked.hostname or "", str(asked.port or 80)) if asked.scheme == "http" else None
        if remote is None:
            return
        there = http.client.HTTPConnection(asked.hostname or "", asked.port or 80, _TIMEOUT)
        there.sock = remote
        with closing(there):
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_HOP}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = (asked.path or "/") + (f"?{asked.query}" if asked.query else "")
            there.request(self.command, path, body or None, {**headers, "Connection": "close"})
            with there.getresponse() as reply:
                self.send_response(reply.status, reply.reason)
                for name, value in reply.getheaders():
                    if name.lower() not in (*_OF_ONE_HOP, "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                while chunk := reply.read(_CHUNK):
                    self.wfile.write(chunk)
        self.close_connection = True

    do_GET = do_HEAD = do_POST = _forward

    def _open(self, host: str, port: str) -> socket.socket | None:
        """A connection; None once the reason why there is none has been answered."""
        if not secrets.compare_digest(self.headers.get("Proxy-Authorization") or "", self.server.password):
            self.send_error(407, "This proxy is for the builds of one Lapis server")
            return None
        try:
            return self.server.connected(host, int(port))
        except PermissionError as error:
            self.send_error(403, str(error))
        except (OSError, ValueError) as error:
            self.send_error(502, f"{host} cannot be reached: {error}")
        return None

    def log_message(self, *_: object) -> None:
        pass


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    """Both ways, until one side closes or nothing comes for a while."""
    with selectors.DefaultSelector() as ready:
        ready.register(one, selectors.EVENT_READ, other)
        ready.register(other, selectors.EVENT_READ, one)
        while events := ready.select(_TIMEOUT):
            for key, _ in events:
                try:
                    data = key.fileobj.recv(_CHUNK)  # type: ignore[union-attr]
                    if not data:
                        return
                    key.data.sendall(data)
                except OSError:
                    return
