"""Tells how a service fares: into a file, and to the server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from lapis.machine import json_files
from lapis.serving.description import Report

EVERY = 10.0  # seconds


class Reporter:
    def __init__(self, where: Report) -> None:
        self._where = where
        self._news = asyncio.Event()
        self._body: dict[str, Any] = {}

    def tell(self, body: dict[str, Any]) -> None:
        """The file has it when this returns; the server soon."""
        self._body = body
        if self._where.file:
            json_files.write(self._where.file, body)
        self._news.set()

    async def send_for_ever(self) -> None:
        if not self._where.url:
            return
        while True:
            await self._news.wait()
            self._news.clear()
            if not await self.send_now():
                await asyncio.sleep(1.0)
                self._news.set()

    async def send_now(self) -> bool:
        """Whether the server took it."""
        if not self._where.url:
            return True
        return await asyncio.to_thread(self._post, json.dumps(self._body).encode())

    def _post(self, body: bytes) -> bool:
        import urllib.request  # late: it is slow to import, and the first report can wait for it

        assert self._where.url is not None
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token()}"}
        request = urllib.request.Request(self._where.url, body, headers, method="POST")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=5.0) as answer:
                return bool(answer.status < 300)
        except (OSError, ValueError):
            return False

    def _token(self) -> str:
        if self._where.token_file:
            try:
                with open(self._where.token_file, encoding="utf-8") as file:
                    return file.read().strip()
            except OSError:
                pass
        return self._where.token or ""
