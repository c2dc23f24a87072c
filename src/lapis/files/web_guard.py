"""Opens addresses of the web that the rule of addresses lets through: it is asked after DNS, and at each redirect."""

from __future__ import annotations

import functools
import http.client
import socket
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from lapis.domain.addresses import Rule, refusal
from lapis.domain.data import shown_url
from lapis.errors import UserErrorException


@functools.lru_cache(maxsize=4)
def opener(rule: Rule) -> Any:
    """As urllib's, with every connection checked. Kept: to make one takes a while."""
    return urllib.request.build_opener(_Http(rule), _Https(rule))


class _Checked:
    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self._rule = rule

    def _opened(self, kind: Any, request: Any, **options: Any) -> Any:
        def connect(address: tuple[str, int], timeout: Any = None, source: Any = None) -> socket.socket:
            """To the very address that was checked: the name could lead elsewhere a moment later."""
            found = self._addresses(request, *address)
            for number, place in enumerate(found, start=1):
                try:
                    return socket.create_connection((place, address[1]), timeout, source)
                except OSError:
                    if number == len(found):
                        raise
            raise OSError(f"{address[0]} has no address")

        def connection(host: str, **more: Any) -> Any:
            made = kind(host, **more)
            made._create_connection = connect
            return made

        if not request.has_proxy():
            return self.do_open(connection, request, **options)  # type: ignore[attr-defined]
        host = str(urlsplit(request.full_url).hostname)
        try:
            self._addresses(request, host, None)
        except OSError:  # the proxy may know the name, and we do not
            self._refuse(request, refusal(self._rule, host))
        return self.do_open(kind, request, **options)  # type: ignore[attr-defined]

    def _addresses(self, request: Any, host: str, port: int | None) -> list[str]:
        """What a host's name leads to; an error if one of them is forbidden."""
        found = [str(each[4][0]) for each in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)]
        self._refuse(request, refusal(self._rule, host, found))
        return found

    def _refuse(self, request: Any, reason: str | None) -> None:
        if reason is not None:
            raise UserErrorException(f"Nothing is fetched from {shown_url(request.full_url)}: {reason}.")


class _Http(_Checked, urllib.request.HTTPHandler):
    def http_open(self, request: Any) -> Any:
        return self._opened(http.client.HTTPConnection, request)


class _Https(_Checked, urllib.request.HTTPSHandler):
    def https_open(self, request: Any) -> Any:
        return self._opened(http.client.HTTPSConnection, request, context=self._context)  # type: ignore[attr-defined]
