"""What the head of an HTTP request may be, and under which names one is answered: pure rules, for server and services.

What two readers may understand in two ways is refused, not guessed: which of two hosts, where a body ends.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Iterable, Sequence

from lapis.domain.limits import HTTP_HEAD, HTTP_HEADERS, HTTP_TARGET

Headers = Sequence["tuple[bytes, bytes]"]  # names in lower case

# of these there is one: who is asked for, where the body ends, who asks
_ONCE = frozenset((b"host", b"content-length", b"transfer-encoding", b"authorization", b"content-type", b"origin"))
_HOST = re.compile(r"(\[[0-9a-fA-F:.%\w]+\]|[^\s:\[\]/@]+)(?::\d{0,5})?")
LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))


def head_fault(target: bytes, headers: Headers, old: bool = False) -> tuple[int, str] | None:
    """Why a request cannot be taken: a status and a reason. `old`: of HTTP/1.0, which need not name a host."""
    if len(target) > HTTP_TARGET:
        return 414, f"The address is longer than {HTTP_TARGET} bytes."
    if len(headers) > HTTP_HEADERS:
        return 431, f"There are more than {HTTP_HEADERS} headers."
    fields = dict(headers)
    if len(fields) < len(headers):
        names = [name for name, _ in headers]
        twice = next((name for name in names if name in _ONCE and names.count(name) > 1), None)
        if twice is not None:
            return 400, f"The header {twice.decode('latin-1')} is there twice."
    values = b"".join([value for _, value in headers])
    if len(values) + sum(map(len, fields)) > HTTP_HEAD:
        return 431, f"The header is longer than {HTTP_HEAD} bytes."
    if b"\n" in values or b"\r" in values or b"\n" in target:
        return 400, "A header is folded over several lines."
    if b"transfer-encoding" in fields:
        if b"content-length" in fields:
            return 400, "Content-Length and Transfer-Encoding say two things of where the body ends."
        if fields[b"transfer-encoding"].strip().lower() != b"chunked":
            return 400, "Of Transfer-Encoding only chunked is understood."
    length = fields.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 18:
        return 400, "Content-Length is no number of bytes."
    if b"host" not in fields and not old:
        return 400, "The request names no Host."
    return None


def overhead_fault(received: int, body: int) -> tuple[int, str] | None:
    """The same of a body in chunks: what came that is not the body, which is what chunks and trailers say beside it."""
    if received - body > HTTP_HEAD + 16 * body:  # a chunk of one byte takes six
        return 431, f"What comes between the chunks of a body is longer than {HTTP_HEAD} bytes."
    return None


@lru_cache(maxsize=256)  # nearly all that come are the same
def host_name(header: str) -> str:
    """The name that a Host header asks for, without its port; empty if it is none."""
    found = _HOST.fullmatch(header)
    return "" if found is None else _plain(found.group(1))


def own_names(addresses: Iterable[str]) -> frozenset[str]:
    """The names under which whoever listens at these addresses answers."""
    return LOOPBACK | {_plain(each) for each in addresses}


def _plain(name: str) -> str:
    """Written one way, however it came: without brackets, in lower case, IPv4 where IPv6 stands for it."""
    name = name.strip("[]").lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name.rstrip(".")
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


# what a page may send to any site without asking there first
_UNASKED = frozenset((b"", b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data"))


def sent_unasked(content_type: bytes) -> bool:
    """Whether browsers send such a body to any site, without a preflight that would have been refused."""
    return content_type.partition(b";")[0].strip().lower() in _UNASKED


def from_elsewhere(host: str, origin: str | None, site: str | None) -> bool:
    """Whether a page of another origin asks: browsers say so, and nothing else says anything.

    `host` is the Host header, `origin` and `site` what Origin and Sec-Fetch-Site say. Pages of the same machine on
    another port are another origin too.
    """
    if site is not None:
        return site in ("cross-site", "same-site")
    return origin is not None and origin.partition("://")[2].lower() != host.lower()
