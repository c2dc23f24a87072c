"""What the front does with requests, good and bad, before and after a worker sees them."""

from __future__ import annotations

import hashlib
import json
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapis.domain import service_tokens
from lapis.testing import until
from tests.serving.service import Service, ask, read_all, serving

ECHO = "import json\ndef init(): ...\ndef run(data): return json.loads(data)\n"
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    limits = {"request_bytes": 2 * MEGABYTE, "read_seconds": 1.0}
    with serving(tmp_path_factory.mktemp("service"), ECHO, limits=limits, cors=["http://a.com"]) as running:
        yield running


def request(body: bytes, *lines: str, first: str = "POST /score HTTP/1.1") -> bytes:
    head = [first, "Host: localhost", f"Content-Length: {len(body)}", *lines, "", ""]
    return "\r\n".join(head).encode() + body


def bodies(content: bytes) -> list[bytes]:
    """Of answers that came one after the other."""
    found = []
    while content:
        head, _, rest = content.partition(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        found.append(rest[:size])
        content = rest[size:]
    return found


def test_requests_sent_in_one_go_are_answered_in_order(service: Service) -> None:
    asked = [request(str(number).encode()) for number in range(50)]
    asked.insert(20, request(b"", first="GET / HTTP/1.1"))
    answers = bodies(service.raw(b"".join(asked) + request(b"99", "Connection: close")))
    expected = [str(number).encode() for number in range(50)]
    assert answers == [*expected[:20], b"Healthy", *expected[20:], b"99"]


def test_a_body_may_come_in_chunks_and_byte_by_byte(service: Service) -> None:
    head = b"POST /score HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert bodies(service.raw(head + b"2\r\n[1\r\n3\r\n,2]\r\n0\r\n\r\n")) == [b"[1, 2]"]
    with service.socket() as connected:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in request(b"[7]", "Connection: close"):
            connected.sendall(bytes([at]))
        assert bodies(read_all(connected)) == [b"[7]"]


def test_clients_of_the_old_kind_are_served(service: Service) -> None:
    answer = service.raw(request(b"1", first="POST /score HTTP/1.0"))
    assert b"connection: close" in answer and answer.endswith(b"\r\n\r\n1")
    with service.socket() as connected:
        kept = request(b"1", "Connection: keep-alive", first="POST /score HTTP/1.0")
        connected.sendall(kept)
        assert b"connection: keep-alive" in connected.recv(65536)
        connected.sendall(kept)
        assert connected.recv(65536).endswith(b"\r\n\r\n1")


def test_a_head_has_the_length_and_no_body(service: Service) -> None:
    answer = service.raw(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert b"content-length: 7" in answer and answer.endswith(b"\r\n\r\n")


def test_who_waits_to_be_told_to_go_on_is_told(service: Service) -> None:
    with service.socket() as connected:
        connected.sendall(
            b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        )
        assert connected.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connected.sendall(b"[5]")
        assert connected.recv(65536).endswith(b"[5]")


def test_who_waits_to_be_told_to_go_on_is_told_if_there_is_no_use(service: Service) -> None:
    answer = service.raw(b"POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 404 ")


def test_an_offer_to_speak_http2_is_passed_over(service: Service) -> None:
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    with service.socket() as connected:
        connected.sendall(request(b"[6]", *offer))
        assert connected.recv(65536).endswith(b"[6]")
        connected.sendall(request(b"[8]"))
        assert connected.recv(65536).endswith(b"[8]")


def test_one_gigabyte_is_refused_before_it_is_sent(service: Service) -> None:
    began = time.monotonic()
    answer = service.raw(b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 413 ") and time.monotonic() - began < 1.5
    assert b"1073741824 bytes or more, and this service takes 2097152" in answer


def test_one_who_sends_on_all_the_same_still_gets_to_read_why(service: Service) -> None:
    with service.socket() as connected:
        connected.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4194304\r\n\r\n")
        connected.sendall(b"x" * (4 * MEGABYTE))
        assert read_all(connected).startswith(b"HTTP/1.1 413 ")


def test_chunks_are_counted_too(service: Service) -> None:
    with service.socket() as connected:
        connected.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            connected.sendall(b"100000\r\n" + b"x" * MEGABYTE + b"\r\n")
        assert read_all(connected).startswith(b"HTTP/1.1 413 ")


def test_a_large_body_within_the_limit_goes_through(service: Service) -> None:
    text = "x" * (MEGABYTE + 12345)
    assert service.ask(text).json == text


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),  # a TLS client
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /score HTTP/1.1\r\nHost\x00: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"Content-Length: 100000\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000,
    ],
)
def test_what_is_no_request_is_refused_and_harms_nobody(service: Service, content: bytes) -> None:
    answer = service.raw(content)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 414 ", b"HTTP/1.1 431 ")), answer
    assert service.process.poll() is None and service.ask([1]).json == [1]


def test_what_comes_behind_a_request_that_is_no_request_spoils_only_itself(service: Service) -> None:
    answer = service.raw(request(b"[1]") + b"\x00garbage\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ") and b"[1]HTTP/1.1 400 " in answer


def test_requests_with_bytes_changed_at_random_harm_nobody(service: Service) -> None:
    chance = random.Random(7)
    worker = service.workers
    whole = request(b"[1]", "X-Request-Id: a", "Transfer-Encoding: chunked") + request(b"[2]", "Connection: close")
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        with service.socket() as connected:
            connected.sendall(changed[: chance.randint(1, len(changed))])
            connected.shutdown(socket.SHUT_WR)
            read_all(connected)
    assert service.process.poll() is None and service.workers == worker and service.ask([1]).json == [1]


def test_a_head_that_never_ends_is_given_up(service: Service) -> None:
    with service.socket() as connected:
        connected.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\n")
        until(lambda: _drips(connected), seconds=5)
        assert read_all(connected).startswith(b"HTTP/1.1 408 ")


def _drips(connected: socket.socket) -> bool:
    """Sends a header now and then, as attackers do; whether an answer has come."""
    connected.settimeout(0.2)
    try:
        connected.sendall(b"X: y\r\n")
        return bool(connected.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        connected.settimeout(20)


def test_a_body_that_never_comes_is_given_up(service: Service) -> None:
    began = time.monotonic()
    assert service.raw(b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12").startswith(
        b"HTTP/1.1 408 "
    )
    assert time.monotonic() - began < 5


def test_one_who_says_nothing_is_not_waited_for(service: Service) -> None:
    began = time.monotonic()
    assert service.raw(b"") == b"" and time.monotonic() - began < 5


def test_a_slow_client_keeps_nobody_waiting(service: Service) -> None:
    with service.socket() as slow:
        slow.sendall(b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n[")
        assert service.ask([2]).json == [2]
        slow.sendall(b"3]")
        assert slow.recv(65536).endswith(b"[3]")


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/nothing", 404, "Nothing is at /nothing."),
        ("PUT", "/score", 405, "PUT is not possible here, but POST, GET, OPTIONS."),
        ("POST", "/swagger.json", 405, "POST is not possible here, but GET."),
        ("POST", "/v2/models/m/infer", 404, "Nothing is at"),
        ("GET", "/score/../secret", 404, "Nothing is at"),
    ],
)
def test_addresses_and_methods_that_are_not_there(
    service: Service, method: str, path: str, status: int, said: str
) -> None:
    answer = service.ask(path=path, method=method)
    assert answer.status == status and answer.message.startswith(said)
    assert answer.headers["x-ms-run-function-failed"] == "False"


def test_a_browser_of_an_allowed_origin_may_ask(service: Service) -> None:
    ahead = {"Origin": "http://a.com", "Access-Control-Request-Method": "POST"}
    answer = service.ask(method="OPTIONS", headers={**ahead, "Access-Control-Request-Headers": "authorization"})
    assert answer.status == 200 and answer.headers["Access-Control-Allow-Headers"] == "authorization"
    assert answer.headers["Access-Control-Allow-Origin"] == "http://a.com"
    assert service.ask([1], headers={"Origin": "http://a.com"}).headers["Access-Control-Allow-Origin"] == "http://a.com"
    assert "Access-Control-Allow-Origin" not in service.ask([1], headers={"Origin": "http://b.com"}).headers


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain", "Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain; charset=application/json", "Origin": "null"}, 403),
        ({"Content-Type": FORM, "Origin": "http://localhost:8888", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "multipart/form-data; boundary=x", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain", "Origin": "http://a.com"}, 200),  # it is let in
        ({"Content-Type": "application/json", "Origin": "http://b.com"}, 200),  # a browser had to ask for this first
        ({"Content-Type": FORM}, 200),  # curl --data
        ({"Content-Type": "application/json"}, 200),
        ({"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_a_page_of_another_origin_cannot_make_a_browser_ask(
    service: Service, headers: dict[str, str], status: int
) -> None:
    answer = service.ask([1], headers=headers)
    assert answer.status == status and (status == 200 or "AML_CORS_ORIGINS" in answer.message)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]:80", "a b"])
def test_a_service_answers_under_its_own_names_only(service: Service, host: str) -> None:
    answer = service.raw(request(b"[1]", "Connection: close").replace(b"Host: localhost", f"Host: {host}".encode()))
    assert answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 "))


@pytest.mark.parametrize("host", ["127.0.0.1:5", "LOCALHOST", "[::1]:80", "localhost.", "[::ffff:127.0.0.1]"])
def test_its_names_may_be_written_in_any_way(service: Service, host: str) -> None:
    answer = service.raw(request(b"[1]", "Connection: close").replace(b"Host: localhost", f"Host: {host}".encode()))
    assert answer.startswith(b"HTTP/1.1 200 ")


CHUNKED = b"POST /score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "content",
    [
        CHUNKED.replace(b"Host: localhost", b"Host: localhost\r\nHost: localhost") + b"0\r\n\r\n",
        CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n",
        b"POST /score HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        CHUNKED + b"1;" + b"a" * 200_000 + b"\r\n1\r\n0\r\n\r\n",
        CHUNKED + b"1\r\n1\r\n0\r\n" + b"Trailer: t\r\n" * 20_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nFolded: a\r\n b\r\n\r\n",
    ],
)
def test_what_two_readers_may_understand_in_two_ways_or_has_no_end_is_refused(service: Service, content: bytes) -> None:
    with service.socket() as connected:
        try:
            connected.sendall(content)
        except OSError:
            pass  # refused before all of it was sent
        assert read_all(connected).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))


def test_what_follows_the_last_chunk_is_not_taken_for_a_header(service: Service) -> None:
    head = CHUNKED.replace(b"Transfer", b"Connection: close\r\nTransfer")
    assert service.raw(head + b"1\r\n7\r\n0\r\nHost: evil.example\r\n\r\n").endswith(b"7")


def test_health_and_metrics_are_told(service: Service) -> None:
    for path in ("/", "/health/live", "/health/ready", "/v2/health/ready"):
        assert service.ask(path=path, method="GET").status == 200
    before = _count(service)
    service.ask([1])
    assert _count(service) == before + 1
    assert "lapis_workers_ready 1" in service.ask(path="/metrics", method="GET").body.decode()


def _count(service: Service) -> int:
    text = service.ask(path="/metrics", method="GET").body.decode()
    return int(text.split("lapis_request_seconds_count ")[1].split()[0])


def test_only_who_has_a_key_or_a_token_may_ask(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"top")
    keys = [hashlib.sha256(key).hexdigest() for key in (b"first", b"second")]
    good, late = int(time.time()) + 100, int(time.time()) - 1
    with serving(tmp_path, ECHO, auth={"keys": keys, "token_secret_file": str(secret)}) as service:

        def status(value: str | None) -> tuple[int, str]:
            answer = service.ask([1], headers={"Authorization": value} if value is not None else {})
            return answer.status, answer.message if answer.status != 200 else ""

        for value in ("Bearer first", "bearer second", f"Bearer {service_tokens.make(b'top', good, 'n')}"):
            assert status(value) == (200, "")
        for value, said in {
            None: "needs a key",
            "Bearer third": "not a token of this service",
            "first": "has to be 'Bearer",
            "Basic first": "has to be 'Bearer",
            "Bearer ": "has to be 'Bearer",
            f"Bearer {keys[0]}": "not a token",
            f"Bearer {service_tokens.make(b'top', late, 'n')}": "expired",
            f"Bearer {service_tokens.make(b'other', good, 'n')}": "not a token",
            f"Bearer {service_tokens.make(b'top', good, 'n').replace(str(good), str(good + 1))}": "not a token",
            "Bearer a.b.c": "not a token",
            "Bearer \xe9.\xff.\xff": "not a token",
            "Bearer " + "x" * 5000: "has to be 'Bearer",
        }.items():
            assert status(value)[0] == 401 and said in status(value)[1], value
        for path in ("/swagger.json", "/metrics"):
            assert service.ask(path=path, method="GET").status == 401
        for path in ("/", "/health/ready", "/v2/health/live"):
            assert service.ask(path=path, method="GET").status == 200
        with service.connection() as connection:  # one that was refused may go on with a key
            assert ask(connection, [1]).status == 401
            assert ask(connection, [1], headers={"Authorization": "Bearer first"}).status == 200
        assert "first" not in service.log and "third" not in service.log


def test_keys_and_limits_may_change_while_it_serves(tmp_path: Path) -> None:
    def keys(*given: bytes) -> dict[str, list[str]]:
        return {"keys": [hashlib.sha256(key).hexdigest() for key in given]}

    with serving(tmp_path, ECHO, auth=keys(b"old")) as service:
        service.describe({**service.description, "auth": keys(b"new"), "limits": {"request_bytes": 10}})
        with service.connection() as connection:
            until(lambda: ask(connection, [1], headers={"Authorization": "Bearer new"}).status == 200)
            assert ask(connection, [1], headers={"Authorization": "Bearer old"}).status == 401
            assert ask(connection, list(range(50)), headers={"Authorization": "Bearer new"}).status == 413
        service.file.write_text("{not json")
        until(lambda: "is not followed" in service.log)
        assert service.ask([1], headers={"Authorization": "Bearer new"}).status == 200


def test_a_share_of_the_requests_goes_to_another_version(tmp_path: Path) -> None:
    other_script = (
        "def init(): ...\ndef run(data, request_headers): return 'other ' + request_headers['X-Request-Id']\n"
    )
    with serving(tmp_path / "other", other_script) as other:
        routes = [{"percent": 50, "address": f"127.0.0.1:{other.port}"}]
        with serving(tmp_path / "main", "def init(): ...\ndef run(data): return 'main'\n", routes=routes) as service:
            answers = [service.ask([1], headers={"x-request-id": "r7"}) for _ in range(60)]
            assert {each.json for each in answers} == {"main", "other r7"}
            assert {each.headers["x-request-id"] for each in answers} == {"r7"}
            assert [each.headers.get_all("date") for each in answers if len(each.headers.get_all("date")) > 1] == []
            other.stop()
            assert {service.ask([1]).json for _ in range(20)} == {"main"}, "what cannot be sent on is answered here"


def test_reports_go_to_the_server_with_the_token(tmp_path: Path) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    heard = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append((self.path, self.headers["Authorization"], json.loads(body)["state"]))
            self.send_response(200 if len(heard) > 1 else 500)  # the first is lost, and told again
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        report = {"url": f"http://127.0.0.1:{server.server_address[1]}/state", "token": "t0"}
        with serving(tmp_path, ECHO, report=report):
            until(lambda: heard and heard[-1] == ("/state", "Bearer t0", "ready"), lambda: heard)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
