"""What may be listened on: loopback, or the one address of a private network that other machines reach this one by.

Nothing that is sent is encrypted, so it has no business on a public address, nor on all addresses at once. The rule
looks at the address that is bound in the end, however it was written: `0`, `::ffff:0.0.0.0`, a name.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from lapis.domain.addresses import literal
from lapis.errors import UserErrorException

_OURS = tuple(
    ipaddress.ip_network(each)
    for each in (
        "127.0.0.0/8", "::1/128",  # loopback
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",  # private
        "169.254.0.0/16", "fe80::/10",  # of one link
    )
)  # fmt: skip


def address_of(host: str, said: str, who: str) -> str:
    """The address to bind for `host`. Else a UserErrorException: `said` is how it was asked for, `who` for whom."""
    addresses = _addresses(host)
    if addresses and all(_allowed(each) for each in addresses):
        return str(addresses[0])
    why = "leads nowhere" if not addresses else f"is {', '.join(map(str, addresses))}"
    why = "" if addresses and str(addresses[0]) == host else f" {host} {why}."
    raise UserErrorException(
        f"{said} cannot be used: {who} listens on loopback (127.0.0.1), or on the one address of a private network "
        f"(such as 10.0.0.5) that the nodes of a cluster reach it by.{why}"
    )


def _addresses(host: str) -> list[Any]:
    """What `host` stands for, IPv4 first; an IPv6 address that stands for an IPv4 one is that one."""
    name = host.strip().strip("[]")
    if name.lower() == "localhost":
        return [ipaddress.ip_address("127.0.0.1")]
    found = literal(name)
    if not found:
        try:
            found = [str(each[4][0]) for each in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
        except (OSError, UnicodeError):
            return []
    plain = [_plain(ipaddress.ip_address(each.partition("%")[0])) for each in dict.fromkeys(found)]
    return sorted(dict.fromkeys(plain), key=lambda each: each.version)


def _plain(address: Any) -> Any:
    return getattr(address, "ipv4_mapped", None) or address


def _allowed(address: Any) -> bool:
    return any(address in network for network in _OURS)
