"""Which port of the server's own address a service listens on: chosen once, and kept for as long as it lives."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping

from lapis.errors import WebserviceException

_RANGE = range(30000, 32000)  # below those that the kernel gives to whoever asks for none, above those of agents


class Ports:
    def __init__(self, host: str) -> None:
        self._host = host

    def choose(self, taken: Mapping[int, str]) -> int:
        """A free one that no other service has."""
        for port in random.sample(_RANGE, len(_RANGE)):
            if port not in taken and self._fault(port) is None:
                return port
        raise WebserviceException(f"No port between {_RANGE[0]} and {_RANGE[-1]} of {self._host} is free.")

    def check(self, port: int, taken: Mapping[int, str], name: str) -> None:
        """Raise if service `name` cannot have that one."""
        if port in taken:
            raise WebserviceException(
                f"Port {port} belongs to service '{taken[port]}', so '{name}' cannot have it. Choose another one, or "
                "leave port out."
            )
        fault = self._fault(port)
        if fault is not None:
            raise WebserviceException(
                f"Port {port} of {self._host} cannot be used for service '{name}' ({fault}). Choose another one, or "
                "leave port out."
            )

    def _fault(self, port: int) -> str | None:
        """Why nobody could listen there now."""
        with socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((self._host, port))
            except OSError as error:
                return error.strerror or str(error)
        return None
