"""The front of a service: takes HTTP requests, says who may ask and how much, and has the workers answer."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import time
from collections.abc import Callable

from lapis.serving import pages
from lapis.serving.call import RETRY, Call
from lapis.serving.connection import ID_CHARACTERS, Connection
from lapis.serving.description import Description
from lapis.serving.figures import Figures
from lapis.serving.forward import Forwarder
from lapis.serving.keys import KeyCheck
from lapis.serving.replicas import Replicas
from lapis.version import VERSION

Refusal = tuple[int, str, bytes]

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Front:
    """What all connections share."""

    def __init__(self, description: Description, replicas: Replicas, say: Callable[[str], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.replicas = replicas
        self.say = say
        self.figures = Figures()
        self.draining, self.drain_idle_seconds = False, 0.0
        self.connections: set[Connection] = set()
        self.lines = b""  # header lines of every answer
        self._held = 0  # bytes of bodies in memory
        self._most_connections = max(64, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)
        self._ids = os.urandom(10).hex()
        self._asked = 0
        self._server: asyncio.Server | None = None
        self._forwarders: list[tuple[float, Forwarder]] = []
        self.take(description)
        self.refresh_date()

    def take(self, description: Description) -> None:
        """Go by what service.json says now: keys, origins, limits, replicas and routes may change while it serves."""
        self.about = description
        self.replicas.description = description
        self.key_check = KeyCheck(description.auth)
        self._prefix = f"/api/v1/service/{description.name}".encode()
        for _, forwarder in self._forwarders:
            forwarder.close()
        self._forwarders = [(route.percent, Forwarder(route.address)) for route in description.routes]

    async def listen(self, listener: object) -> None:
        self._server = await self.loop.create_server(lambda: Connection(self), sock=listener, backlog=2048)  # type: ignore[call-overload]

    def stop_accepting(self, idle_seconds: float) -> None:
        """The listening socket itself stays open wherever else it is open. Idle connections have a while to speak."""
        self.draining, self.drain_idle_seconds = True, idle_seconds
        for _, forwarder in self._forwarders:
            forwarder.close()
        if self._server is not None:
            self._server.close()

    def refresh_date(self) -> None:
        now = time.gmtime()
        date = time.strftime(f"{_DAYS[now.tm_wday]}, %d {_MONTHS[now.tm_mon - 1]} %Y %H:%M:%S GMT", now)
        self.lines = f"date: {date}\r\nserver: lapis\r\nx-ms-server-version: lapis/{VERSION}\r\n".encode()

    # What connections ask

    def welcome(self, connection: Connection) -> bool:
        self.connections.add(connection)
        return len(self.connections) <= self._most_connections

    def farewell(self, connection: Connection) -> None:
        self.connections.discard(connection)

    def ids(self, call: Call) -> tuple[bytes, Refusal | None]:
        """The header lines that name the request, as Azure's server writes them, with those of CORS."""
        fields = call.fields
        own = fields.get(b"x-request-id")
        if own is None:
            self._asked += 1
            own = self._made_id()
        client = fields.get(b"x-ms-client-request-id")
        shown = fields.get(b"x-ms-request-id") or client or own
        for name, value in ((b"x-request-id", own), (b"x-ms-request-id", shown), (b"x-ms-client-request-id", client)):
            if value is not None and len(value) > ID_CHARACTERS:
                return b"", (431, f"{name.decode()} must not exceed {ID_CHARACTERS} characters", b"")
        lines = b"x-request-id: " + own + b"\r\nx-ms-request-id: " + shown + b"\r\n"
        if client is not None:
            lines += b"x-ms-client-request-id: " + client + b"\r\n"
        if self.about.cors:
            lines += self._cors(fields.get(b"origin"))
        return lines, None

    def check(self, call: Call, announced: int) -> Refusal | None:
        """Whether to read on, by the head alone."""
        if call.path.startswith(self._prefix):  # the address that a cluster's services have
            call.path = call.path[len(self._prefix) :] or b"/"
        found = pages.find(call, self)
        if isinstance(found, tuple):
            return found
        call.page = found
        if not pages.is_free(call, found):
            reason = self.key_check.refusal(call.fields.get(b"authorization"))
            if reason is not None:
                return 401, reason, b"www-authenticate: Bearer\r\n"
        limits = self.about.limits
        if announced > limits.request_bytes:
            return self._too_large(announced)
        if self._held + announced > limits.held_bytes:
            return 429, "The service holds as many bytes of requests as it may. Try again in a moment.", RETRY
        return None

    def hold(self, call: Call, size: int) -> Refusal | None:
        """So much of its body has come."""
        self._held += size
        if call.size > self.about.limits.request_bytes:
            return self._too_large(call.size)
        if self._held > self.about.limits.held_bytes + self.about.limits.request_bytes:
            return 429, "The service holds as many bytes of requests as it may. Try again in a moment.", RETRY
        return None

    def begin(self, call: Call) -> None:
        """It has come whole and is the next in its row: have it answered."""
        if call.refused is not None:
            call.refuse(*call.refused)
        elif call.page is not None:
            call.page(call, self)
        elif self._forwarders and self._forwarded(call):
            pass
        else:
            self.replicas.submit(call)

    def release(self, call: Call) -> None:
        """It is answered, or nobody wants it any more."""
        self._held -= call.size
        call.size = 0

    # Helpers

    def _made_id(self) -> bytes:
        text = f"{self._ids}{self._asked & 0xFFFFFFFFFFFF:012x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}".encode()

    def _cors(self, origin: bytes | None) -> bytes:
        if "*" in self.about.cors:
            return b"access-control-allow-origin: *\r\n"
        if origin is not None and origin.decode("latin-1") in self.about.cors:
            return b"access-control-allow-origin: " + origin + b"\r\nvary: Origin\r\n"
        return b""

    def _too_large(self, size: int) -> Refusal:
        most = self.about.limits.request_bytes
        return 413, f"The body has {size} bytes or more, and this service takes {most}.", b""

    def _forwarded(self, call: Call) -> bool:
        """Whether it went to another version of the service, by the shares that those have."""
        chance = random.random() * 100
        for percent, forwarder in self._forwarders:
            if chance < percent:
                forwarder.send(call, otherwise=self.replicas.submit)
                return True
            chance -= percent
        return False
