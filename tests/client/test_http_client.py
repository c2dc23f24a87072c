"""The client keeps a connection, and never takes one answer for another."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lapis.client.http_client import Client, Endpoint
from lapis.errors import ServiceException, Unavailable, UserErrorException


class Echo(BaseHTTPRequestHandler):
    """Answers with the path that was asked for; what the path ends with says how."""

    protocol_version = "HTTP/1.1"
    connections: set[Any] = set()

    def do_GET(self) -> None:  # noqa: N802
        self.connections.add(self.client_address)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = b'["%s", %d]' % (self.path.encode(), len(body))
        self.send_response(404 if self.path.endswith("/lacking") else 200)
        if self.path.endswith("/until-closed"):
            self.send_header("Connection", "close")
        elif self.path.endswith("/chunked"):
            self.send_header("Transfer-Encoding", "chunked")
            text = b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text)
        else:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = self.path.endswith(("/until-closed", "/dropped"))  # dropped: without a word

    do_POST = do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[str]:
    """The address of a server that runs beside the block."""
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@pytest.fixture
def client() -> Iterator[Client]:
    Echo.connections = set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    with serving(server) as url:
        client = Client(Endpoint(url, "token"))
        yield client
        client.close()


def test_requests_share_one_connection(client: Client) -> None:
    assert client.call("GET", "/a") == ["/api/v1/a", 0]
    assert client.call("POST", "/b", data=b"12345") == ["/api/v1/b", 5]
    assert client.call("POST", "/c", {"x": 1}, query={"y": 2}) == ["/api/v1/c?y=2", 7]
    assert client.upload("/d", lambda: iter([b"12", b"34"]), 4) == ["/api/v1/d", 4]
    assert len(Echo.connections) == 1


@pytest.mark.parametrize("how", ["until-closed", "chunked", "dropped"])
def test_an_answer_is_read_whole_however_its_end_is_told(client: Client, how: str) -> None:
    for _ in range(2):
        assert client.call("GET", f"/{how}") == [f"/api/v1/{how}", 0]
    assert client.call("GET", "/next") == ["/api/v1/next", 0]


def test_a_download_that_was_broken_off_is_not_read_on_by_the_next_request(client: Client) -> None:
    class Enough(BaseException):
        pass

    def refuse(_: bytes) -> None:
        raise Enough

    with pytest.raises(Enough):
        client.download("/first", refuse)
    assert client.call("GET", "/second") == ["/api/v1/second", 0]


def test_an_upload_that_failed_half_way_is_not_gone_on_with(client: Client) -> None:
    def short() -> Iterable[bytes]:
        yield b"12"
        raise UserErrorException("became shorter")

    client.call("GET", "/warm")
    with pytest.raises(UserErrorException, match="became shorter"):
        client.upload("/first", short, 4)
    assert client.call("POST", "/second", data=b"123") == ["/api/v1/second", 3]


def test_an_answer_nobody_waited_for_is_not_taken_for_the_next_one(client: Client) -> None:
    """As after Ctrl-C between the request and its answer."""
    client.call("GET", "/warm")
    client._open("GET", "/first", None, None, None, None, None, read=False)
    assert client.call("GET", "/second") == ["/api/v1/second", 0]


def test_an_error_is_raised_and_the_connection_stays(client: Client) -> None:
    with pytest.raises(ServiceException, match="status 404"):
        client.call("GET", "/lacking")
    assert client.call("GET", "/next") == ["/api/v1/next", 0]
    assert len(Echo.connections) == 1


@pytest.mark.parametrize("name", ["a b", "a\r\nX-More: 1", "ä"])
def test_a_name_that_cannot_stand_in_a_request_is_refused_before_it_is_sent(client: Client, name: str) -> None:
    with pytest.raises(UserErrorException, match="cannot be asked for"):
        client.call("GET", f"/{name}")
    assert Echo.connections == set()


@pytest.mark.parametrize("url", ["http://127.0.0.1:port", "ftp://127.0.0.1:80", "127.0.0.1:80", "http://"])
def test_what_is_no_address_of_a_server_is_said_at_once(url: str) -> None:
    with pytest.raises(UserErrorException, match="is no address of a server"):
        Client(Endpoint(url, "token")).call("GET", "/a")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"SSH-2.0-OpenSSH\r\n",
    ],
)
def test_an_answer_cut_short_or_in_another_language_is_none(said: bytes) -> None:
    class Mumble(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(said)

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mumble)) as url, pytest.raises(Unavailable):
        Client(Endpoint(url, "token")).call("GET", "/a", patience=0.0)
