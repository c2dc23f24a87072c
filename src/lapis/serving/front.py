"""The front of a service: takes HTTP requests, says who may ask and how much, and has the workers answer."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import socket
import time
from collections.abc import Callable

from lapis.domain.http_head import from_elsewhere, host_name, own_names, sent_unasked
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

_NOT_FROM_THERE = (
    "A page of another origin may not ask this service. To let it, name its origin in the variable AML_CORS_ORIGINS of "
    "the service's environment."
)
_IDS = (b"x-request-id", b"x-ms-request-id", b"x-ms-client-request-id")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Front:
    """What all connections share."""

    def __init__(
        self, description: Description, replicas: Replicas, say: Callable[[str], None], most_connections: int = 0
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.replicas = replicas
        self.say = say
        self.figures = Figures()
        self.draining, self.drain_idle_seconds = False, 0.0
        self.connections: set[Connection] = set()
        self.lines = b""  # header lines of every answer
        self._held = 0  # bytes of bodies in memory
        self._most_connections = most_connections or max(
            64, min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        )
        chosen = os.urandom(10).hex()
        self._ids = f"{chosen[:8]}-{chosen[8:12]}-{chosen[12:16]}-{chosen[16:]}-".encode()  # how they all begin
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
        self._names = own_names([description.listen.host, socket.gethostname()])
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
        """Whether there is room for it; the one that has been silent the longest makes some."""
        self.connections.add(connection)
        if len(self.connections) <= self._most_connections:
            return True
        silent = [each for each in self.connections if each is not connection and not each.asked]
        if not silent:
            return False
        self.connections.discard(leaving := min(silent, key=lambda each: each.since))
        leaving.drop()
        return True

    def farewell(self, connection: Connection) -> None:
        self.connections.discard(connection)

    def ids(self, call: Call) -> tuple[bytes, Refusal | None]:
        """The header lines that name the request, as Azure's server writes them, with those of CORS."""
        fields = call.fields
        for name in _IDS:
            if name in fields and len(fields[name]) > ID_CHARACTERS:
                return b"", (431, f"{name.decode()} must not exceed {ID_CHARACTERS} characters", b"")
        own, client = fields.get(b"x-request-id") or self._made_id(), fields.get(b"x-ms-client-request-id")
        shown = fields.get(b"x-ms-request-id") or client or own
        lines = b"x-request-id: %b\r\nx-ms-request-id: %b\r\n" % (own, shown)
        if client is not None:
            lines += b"x-ms-client-request-id: " + client + b"\r\n"
        if self.about.cors:
            lines += self._cors(fields.get(b"origin"))
        return lines, None

    def check(self, call: Call, announced: int) -> Refusal | None:
        """Whether to read on, by the head alone."""
        if call.path.startswith(self._prefix):  # the address that a cluster's services have
            call.path = call.path[len(self._prefix) :] or b"/"
        fields = call.fields
        if not self._is_called(fields):
            return 403, f"This service does not answer under the name {fields[b'host'][:100].decode('latin-1')!r}.", b""
        found = pages.find(call, self)
        if isinstance(found, tuple):
            return found
        call.page = found
        if found is None and call.method == b"POST" and self._is_forged(fields):
            return 403, _NOT_FROM_THERE, b""
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

    def _is_called(self, fields: dict[bytes, bytes]) -> bool:
        """Whether it is asked by a name of its own: a page that rebinds another name to this address is not."""
        host = fields.get(b"host")
        return host is None or self.about.listen.anywhere or host_name(host.decode("latin-1")) in self._names

    def _is_forged(self, fields: dict[bytes, bytes]) -> bool:
        """Whether a page of another origin makes a browser ask, unasked. What it had to ask for first was let in."""
        origin, site = fields.get(b"origin"), fields.get(b"sec-fetch-site")
        if (origin is None and site is None) or not sent_unasked(fields.get(b"content-type", b"")):
            return False
        asked_by = None if origin is None else origin.decode("latin-1")
        if "*" in self.about.cors or asked_by in self.about.cors:
            return False
        host = fields.get(b"host", b"").decode("latin-1")
        return from_elsewhere(host, asked_by, None if site is None else site.decode("latin-1"))

    def _made_id(self) -> bytes:
        self._asked += 1
        return b"%b%012x" % (self._ids, self._asked & 0xFFFFFFFFFFFF)

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
