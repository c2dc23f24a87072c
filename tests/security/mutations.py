"""Hostile forms of a request: one thing of it is replaced by something that nobody should send."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote, urlencode

from tests.security.recorded import Asked

NESTED: Any = []
for _ in range(200):
    NESTED = [NESTED]

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 1e308, float("nan"), float("inf"), 0.5,
    "", " ", "0", "abc", "\x00", "\ud800", "\u202e", "a\nb", "\r\nX: y", "é" * 300, "x" * 70_000, "../../token",
    "/etc/passwd", "..\\..\\token", "file:///etc/passwd", "C:\\windows", "%2e%2e%2ftoken", "';--", "$(touch x)",
    "{{7*7}}", "<script>alert(1)</script>", "\x1b]0;x\x07", [], {}, [None], [[]], {"": None}, {"a": {"b": []}}, NESTED,
    ["x"] * 5000, {str(n): n for n in range(5000)},
]  # fmt: skip
TEXTS = [value for value in VALUES if isinstance(value, str)]
NOT_MUTATED = {"wait"}  # of a watch: it would do as it is told, and wait


def mutated(asked: Asked, chance: random.Random) -> tuple[str, str, bytes]:
    """Method, target and body of a hostile form of the request."""
    path, query, body = asked.path, list(asked.query), asked.body
    where = chance.choice(["body", "body", "body", "path", "query", "bytes"])
    if where == "body" and body:
        body = _mutated_body(body, chance)
    elif where == "bytes" and body:
        body = _mutated_bytes(body, chance)
    elif where == "query" or where != "path":
        query = _mutated_query(query, chance)
    else:
        parts = path.split("/")
        parts[chance.randrange(3, len(parts)) if len(parts) > 3 else -1] = quote(
            _text(chance), "./\\%'", errors="surrogatepass"
        )
        path = "/".join(parts)
    method = chance.choice(["GET", "POST", "PUT", "PATCH", "DELETE"]) if chance.random() < 0.05 else asked.method
    return method, path + ("?" + urlencode(query, errors="surrogatepass") if query else ""), body


def _mutated_body(body: bytes, chance: random.Random) -> bytes:
    """JSON, or the JSON line that frames begin with, with one value of it replaced, removed or added."""
    head, newline, rest = body.partition(b"\n")
    try:
        value = json.loads(head)
    except ValueError:
        return _mutated_bytes(body, chance)
    places = list(_places(value))
    if not places or chance.random() < 0.05:
        value = chance.choice(VALUES)
    else:
        holder, key = chance.choice(places)
        what = chance.random()
        if what < 0.1:
            del holder[key]
        elif what < 0.2 and isinstance(holder, dict):
            holder[_text(chance)] = chance.choice(VALUES)
        else:
            holder[key] = chance.choice(VALUES)
    return json.dumps(value).encode() + newline + rest


def _places(value: Any) -> Any:
    """Every place in a value as what holds it and the key or index there."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for key, below in items:
        yield value, key
        yield from _places(below)


def _mutated_bytes(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body))
    return chance.choice([
        body[:at],
        body + body[at:],
        body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :],
        b"\xff\xfe" + body,
        b"[" * 100_000,
        b'{"a":' * 10_000,
        b"1" * 10_000,
    ])  # fmt: skip


def _mutated_query(query: list[tuple[str, str]], chance: random.Random) -> list[tuple[str, str]]:
    names = [name for name, _ in query if name not in NOT_MUTATED]
    names += [
        "name",
        "version",
        "limit",
        "offset",
        "cursor",
        "status",
        "tag",
        "signature",
        "expires",
        "maximize",
        "log",
    ]
    name = chance.choice(names)
    return [pair for pair in query if pair[0] != name] + [(name, _text(chance))]


def _text(chance: random.Random) -> str:
    value = chance.choice(VALUES)
    return value if isinstance(value, str) else json.dumps(value)[:60_000]
