"""What may be listened on, however it is written."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from lapis.errors import UserErrorException
from lapis.machine.listening import address_of


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("10.0.0.5", "10.0.0.5"),
        ("172.31.255.255", "172.31.255.255"),
        ("192.168.1.1", "192.168.1.1"),
        ("fd00::1", "fd00::1"),
    ],
)
def test_loopback_and_private_addresses_may_be(host: str, address: str) -> None:
    assert address_of(host, "It", "it") == address


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "0", "0x0", "::", "::0", "[::]", "::ffff:0.0.0.0", "::ffff:0:0", "::ffff:8.8.8.8", "8.8.8.8",
     "172.32.0.1", "2001:4860:4860::8888", "255.255.255.255", "224.0.0.1", "100.64.0.1", "", "localhost.evil.invalid"],
)  # fmt: skip
def test_everything_else_is_refused_with_what_to_do(host: str) -> None:
    with pytest.raises(UserErrorException, match="It cannot be used: it listens on loopback .* private network"):
        address_of(host, "It", "it")


def test_a_name_is_what_it_leads_to_and_all_of_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    leads_to = {"inside": ["10.0.0.7"], "both": ["10.0.0.7", "8.8.8.8"], "mapped": ["::ffff:0.0.0.0"]}

    def found(name: str, *_: Any, **__: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, 0)) for address in leads_to[name]]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    assert address_of("inside", "It", "it") == "10.0.0.7"
    for name in ("both", "mapped"):
        with pytest.raises(UserErrorException, match=name):
            address_of(name, "It", "it")
