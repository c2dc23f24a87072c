"""Which addresses of the network may be fetched from: a rule as a value, and whether it lets a host through."""

from __future__ import annotations

import ipaddress
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from lapis.errors import UserErrorException

ALLOWED, FORBIDDEN = "LAPIS_ALLOWED_ADDRESSES", "LAPIS_FORBIDDEN_ADDRESSES"
# Services that hand out a machine's own credentials to whoever asks from it.
METADATA = (
    "169.254.169.254",  # Amazon, Azure, Google and others
    "169.254.170.2",  # containers of Amazon's
    "168.63.129.16",  # Azure
    "100.100.100.200",  # Alibaba
    "fd00:ec2::254",  # Amazon
    "metadata.google.internal",
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Places(NamedTuple):
    """Hosts by name, a name with a leading dot standing for all below it, and networks."""

    names: tuple[str, ...]
    networks: tuple[Any, ...]

    def find(self, host: str, addresses: Sequence[Any]) -> str | None:
        """Which of a host's name and its addresses is among them."""
        for name in self.names:
            if host == name.lstrip(".") or (name.startswith(".") and host.endswith(name)):
                return host
        return next((str(each) for each in addresses if self.holds(each)), None)

    def holds(self, address: Any) -> bool:
        return any(form in network for form in _forms(address) for network in self.networks)


class Rule(NamedTuple):
    allowed: Places | None  # None: all that is not forbidden
    forbidden: Places


def rule_of(environ: Mapping[str, str]) -> Rule:
    """What LAPIS_ALLOWED_ADDRESSES and LAPIS_FORBIDDEN_ADDRESSES say."""
    allowed = environ.get(ALLOWED, "").strip()
    return Rule(_parsed(ALLOWED, allowed) if allowed else None, _parsed(FORBIDDEN, environ.get(FORBIDDEN, "")))


def refusal(rule: Rule, host: str, found: Iterable[str] | None = None) -> str | None:
    """Why nothing may be fetched from `host`, whose name leads to the addresses `found`; None if it may be.

    Without `found` only what the name says can be told.
    """
    host = host.lower().strip("[]").rstrip(".")
    addresses = [ipaddress.ip_address(each.partition("%")[0]) for each in {*(found or ()), *literal(host)}]
    hit = rule.forbidden.find(host, addresses)
    if hit is not None:
        return f"{hit} is among {FORBIDDEN}"
    by_name = rule.allowed is not None and rule.allowed.find(host, ()) is not None
    by_address = rule.allowed is not None and bool(addresses) and all(map(rule.allowed.holds, addresses))
    if rule.allowed is not None and not by_name and not by_address:
        if found is not None or addresses or not rule.allowed.networks:  # else its addresses may still be allowed
            return f"{host} is not among {ALLOWED}"
    hit = _METADATA.find("" if by_name else host, [] if by_address else addresses)
    return None if hit is None else _of_metadata(hit)


def refusal_of_address(rule: Rule, address: str) -> str | None:
    """Why nothing may be sent to an address whose host is not known, so that only what is forbidden can be told."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if rule.forbidden.holds(found):
        return f"{found} is among {FORBIDDEN}"
    if _METADATA.holds(found) and not (rule.allowed is not None and rule.allowed.holds(found)):
        return _of_metadata(str(found))
    return None


def _of_metadata(hit: str) -> str:
    return f"{hit} belongs to a cloud's metadata service, and is not among {ALLOWED}"


def literal(host: str) -> list[str]:
    """The address that a host is written as, however it is: `10.1`, `0x0a000001` and `[::1]` are addresses too."""
    import socket

    try:
        return [str(ipaddress.ip_address(host.strip("[]").partition("%")[0]))]
    except ValueError:
        pass
    try:
        return [socket.inet_ntoa(socket.inet_aton(host))]
    except OSError:
        return []


def _parsed(setting: str, text: str) -> Places:
    names, networks = [], []
    for each in filter(None, (part.strip().lower() for part in text.split(","))):
        try:
            networks.append(ipaddress.ip_network(each.strip("[]"), strict=False))
            continue
        except ValueError:
            name = each[1:] if each.startswith("*.") else each
        if "/" in name or ":" in name or "*" in name or not name.strip("."):
            raise UserErrorException(
                f"{setting} holds {each!r}; it must be hosts, addresses and networks with commas between, such as "
                "example.org, *.example.org, 10.0.0.0/8."
            )
        names.append(name)
    return Places(tuple(names), tuple(networks))


def _forms(address: Any) -> list[Any]:
    """An address of version 6 that stands for one of version 4 is both."""
    inside = getattr(address, "ipv4_mapped", None)
    if inside is None and address.version == 6 and address in _NAT64:
        inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return [address] if inside is None else [address, inside]


_METADATA = _parsed("METADATA", ",".join(METADATA))
