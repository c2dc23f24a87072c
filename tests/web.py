"""A web server of the tests' own, on loopback: files by path, and every way in which a server disappoints."""

from __future__ import annotations

import hashlib
import http.server
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Page:
    content: bytes
    status: int = 200
    etag: str | None = "by content"  # another text is sent as it is; None: no ETag
    says_length: int | None = None  # a Content-Length that is not true
    says_nothing: bool = False  # no Content-Length
    leads_to: str | None = None  # a redirect there
    head: int = 200  # what a HEAD is answered with
    ranges: bool = True
    ranges_work: bool = True
    cut_after: int | None = None  # bytes of an answer before the connection is closed ...
    cuts: int = 10**9  # ... so many times
    per_second: int | None = None  # bytes of one stream
    gate: threading.Event | None = None  # the body waits for it
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def mark(self) -> str | None:
        return f'"{hashlib.md5(self.content).hexdigest()}"' if self.etag == "by content" else self.etag


class Web:
    """`web.pages['/a.txt'] = Page(b'...')`, then `web.url('/a.txt')`; `web.asked` tells what was asked for."""

    def __init__(self, server: http.server.ThreadingHTTPServer) -> None:
        self.port = server.server_address[1]
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str, str | None]] = []  # method, path, range

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def put(self, path: str, content: bytes, **more: Any) -> str:
        self.pages[path] = Page(content, **more)
        return self.url(path)

    def gets(self, path: str) -> list[str | None]:
        """The ranges of the GETs of a path."""
        return [span for method, asked, span in self.asked if method == "GET" and asked == path]


@contextmanager
def serving(port: int = 0) -> Iterator[Web]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.daemon_threads = True
    web = server.web = Web(server)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        web: Web = self.server.web  # type: ignore[attr-defined]
        web.asked.append((self.command, self.path, self.headers.get("Range")))
        page = web.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        if page.leads_to is not None:
            self.send_response(302)
            self.send_header("Location", page.leads_to)
            self.end_headers()
            return
        status = page.status if body else (page.status if page.status != 200 else page.head)
        if status != 200:
            self.send_error(status)
            return
        content, span = page.content, self._span(page) if body else None
        self.send_response(206 if span else 200)
        if span:
            content = content[span[0] : span[1]]
            self.send_header("Content-Range", f"bytes {span[0]}-{span[1] - 1}/{len(page.content)}")
        if page.mark:
            self.send_header("ETag", page.mark)
        if page.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if not page.says_nothing:
            self.send_header("Content-Length", str(len(content) if page.says_length is None else page.says_length))
        self.end_headers()
        if body:
            self._send(page, content)

    def _span(self, page: Page) -> tuple[int, int] | None:
        asked, only_if = self.headers.get("Range"), self.headers.get("If-Range")
        if not asked or not page.ranges_work or only_if not in (None, page.mark):
            return None
        begin, _, end = asked.removeprefix("bytes=").partition("-")
        return int(begin), min(int(end) + 1 if end else len(page.content), len(page.content))

    def _send(self, page: Page, content: bytes) -> None:
        if page.gate is not None:
            page.gate.wait(30)
        with page.lock:
            cut = page.cut_after is not None and page.cuts > 0
            page.cuts -= 1 if cut else 0
        content = content[: page.cut_after] if cut else content
        step = len(content) or 1
        if page.per_second is not None:
            step = max(1, page.per_second // 20)
        try:
            for begin in range(0, len(content), step):
                self.wfile.write(content[begin : begin + step])
                if page.per_second is not None:
                    time.sleep(0.05)
        except OSError:
            pass  # the client has left

    def log_message(self, *_: Any) -> None:
        pass
