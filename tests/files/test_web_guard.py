"""What may be fetched: asked after DNS, at each redirect, and of what a proxy would fetch."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lapis.domain.addresses import Rule, rule_of
from lapis.errors import UserErrorException
from lapis.files.web_cache import WebCache
from lapis.files.web_guard import opener
from tests.web import Web


def forbidding(text: str) -> Rule:
    return rule_of({"LAPIS_FORBIDDEN_ADDRESSES": text})


def refused(rule: Rule, url: str, tmp_path: Path) -> str:
    with pytest.raises(UserErrorException) as error:
        WebCache(str(tmp_path / "cache"), rule=rule).fetch(url)
    assert not any(tmp_path.rglob("*.part"))
    return error.value.message


def test_what_a_name_leads_to_counts(web: Web, tmp_path: Path) -> None:
    web.put("/a", b"a")
    url = f"http://localhost:{web.port}/a"
    said = refused(forbidding("127.0.0.0/8"), url + "?key=SECRET", tmp_path)
    assert said == f"Nothing is fetched from {url}?...: 127.0.0.1 is among LAPIS_FORBIDDEN_ADDRESSES."
    assert web.asked == []
    assert Path(WebCache(str(tmp_path / "cache"), rule=forbidding("10.0.0.0/8")).fetch(url)).read_bytes() == b"a"


def test_a_redirect_is_no_way_round(web: Web, tmp_path: Path) -> None:
    web.put("/x", b"x")
    start = web.put("/start", b"", leads_to=f"http://localhost:{web.port}/x")
    assert "localhost is among LAPIS_FORBIDDEN_ADDRESSES" in refused(forbidding("localhost"), start, tmp_path)
    assert [path for _, path, _ in web.asked] == ["/start"]
    metadata = web.put("/meta", b"", leads_to="http://169.254.169.254/latest/meta-data/")
    assert "metadata service" in refused(forbidding(""), metadata, tmp_path)


def test_a_mirror_is_no_way_round(web: Web, tmp_path: Path) -> None:
    mirrors = f"http://gone.example/={web.url('/')}"
    with pytest.raises(UserErrorException, match="127.0.0.1 is among LAPIS_FORBIDDEN_ADDRESSES"):
        WebCache(str(tmp_path), mirrors, rule=forbidding("127.0.0.1")).describe("http://gone.example/a")


def test_the_settings_count_where_no_rule_is_given(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPIS_ALLOWED_ADDRESSES", "data.example")
    with pytest.raises(UserErrorException, match="127.0.0.1 is not among LAPIS_ALLOWED_ADDRESSES"):
        WebCache(str(tmp_path)).describe(web.put("/a", b"a"))


def test_a_proxy_is_not_asked_for_what_is_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.delenv("no_proxy", raising=False)
    opener.cache_clear()  # which proxies there are is asked once
    try:
        rule = forbidding("127.0.0.1,no-such-name.invalid")  # the proxy itself is the machine's own business
        for url in ("http://169.254.169.254/x", "http://no-such-name.invalid/x"):
            refused(rule, url, tmp_path)
        with pytest.raises(UserErrorException, match="is not there"):
            WebCache(str(tmp_path), rule=rule).describe("http://other-name.invalid/x")
        assert asked == ["http://other-name.invalid/x"]
    finally:
        opener.cache_clear()
        server.shutdown()
        server.server_close()


def test_a_process_that_does_errands_connects_to_nothing_forbidden(web: Web) -> None:
    code = (
        "import socket, sys, asyncio\n"
        "from lapis.object_stores.fetch import _watch_connections\n"
        "from lapis.domain.addresses import rule_of\n"
        "_watch_connections(rule_of({'LAPIS_FORBIDDEN_ADDRESSES': '127.0.0.1'}))\n"
        "for connect in (lambda: socket.create_connection(('localhost', int(sys.argv[1]))),\n"
        "                lambda: asyncio.run(asyncio.open_connection('127.0.0.1', int(sys.argv[1])))):\n"
        "    try:\n"
        "        connect()\n"
        "    except Exception as error:\n"
        "        print('refused' if '127.0.0.1 is among' in str(error) else repr(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(web.port)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "refused\nrefused\n", done.stdout + done.stderr
