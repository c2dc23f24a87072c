"""Clients of a service: the same request again and again over connections that stay open, timed one by one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

import uvloop


def load(port: int, connections: int, seconds: float) -> tuple[list[float], float]:
    """The seconds of each request, and of all together. In a process of its own, like a client."""
    command = [sys.executable, __file__, str(port), str(connections), str(seconds)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    said = json.loads(done.stdout)
    return said["times"], said["took"]


class _Client(asyncio.Protocol):
    """Sends the same request again as soon as its answer is there; connects anew where the server closes."""

    def __init__(self, port: int, request: bytes, times: list[float], end: float) -> None:
        self._port, self._request, self._times, self._end = port, request, times, end
        self._loop = asyncio.get_running_loop()
        self.done = self._loop.create_future()
        self.open()

    def open(self) -> None:
        self._data, self._wanted, self._last = b"", 0, False
        self._began = time.perf_counter()
        self._task = self._loop.create_task(self._loop.create_connection(lambda: self, "127.0.0.1", self._port))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._wanted:
            head, found, _ = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            lines = head.lower().split(b"\r\n")
            if b" 200 " not in lines[0]:
                self.done.set_exception(RuntimeError(repr(self._data[:500])))
                return
            size = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
            self._wanted = len(head) + 4 + size
            self._last = b"connection: close" in lines
        if len(self._data) < self._wanted:
            return
        now = time.perf_counter()
        self._times.append(now - self._began)
        if now >= self._end:
            self._last = True
            self._transport.close()
            self.done.set_result(None)
        elif self._last:
            self._transport.close()
            self.open()
            self._last = True
        else:
            self._data, self._wanted, self._began = b"", 0, now
            self._transport.write(self._request)  # type: ignore[attr-defined]

    def connection_lost(self, error: Exception | None) -> None:
        if not self._last and not self.done.done():
            self.done.set_exception(error or ConnectionError("closed without an answer"))


async def _be_clients(port: int, connections: int, seconds: float) -> None:
    body = json.dumps({"data": [[round(n % 256 / 255, 4) for n in range(784)]]}).encode()
    head = f"POST /score HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    times: list[float] = []
    began = time.perf_counter()
    clients = [_Client(port, request, times, began + seconds) for _ in range(connections)]
    await asyncio.wait_for(asyncio.gather(*(client.done for client in clients)), seconds + 60)
    print(json.dumps({"times": times, "took": time.perf_counter() - began}))


if __name__ == "__main__":
    uvloop.run(_be_clients(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
