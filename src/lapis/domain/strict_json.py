"""JSON as it comes in from outside: only what can be kept, shown and sent on by everybody.

Python takes more than JSON has: `NaN`, numbers without bound, half a character, and nesting that breaks whatever walks
through it. All of that is an error here, so nothing behind this door has to think of it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from lapis.domain.limits import JSON_DEPTH as DEEPEST
from lapis.errors import UserErrorException

LARGEST = 2**63 - 1  # what a database and other languages take for a whole number
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_MANY_DIGITS = re.compile("[0-9]{19}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def decode(body: bytes | bytearray | memoryview) -> Any:
    """The value that a body stands for. UserErrorException, which says what is wrong with it, for anything else."""
    raw = bytes(body)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise UserErrorException("The request cannot be read: it is not UTF-8.") from None
    decoder = _WITH_LARGE_NUMBERS if _MANY_DIGITS.search(text) else _DECODER
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as fault:
        raise UserErrorException(f"The request cannot be read: it is not JSON ({fault}).") from None
    if _may_be_deep(raw) and _is_deep(value):
        raise _too_deep()
    if _HALF_CHARACTER.search(text) and _has_half_characters(value):
        raise UserErrorException("The request cannot be read: a text in it holds half a character (a lone surrogate).")
    return value


def _too_deep() -> UserErrorException:
    return UserErrorException(f"The request cannot be read: it is nested more than {DEEPEST} levels deep.")


def _no_constant(name: str) -> Any:
    raise UserErrorException(f"The request cannot be read: {name} is no number in JSON.")


def _bounded_float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise UserErrorException(f"The request cannot be read: the number {digits[:40]} is too large.")
    return value


def _bounded_int(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > LARGEST:
        raise UserErrorException(f"The request cannot be read: the number {digits[:40]} is too large.")
    return int(digits)


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_bounded_float)
_WITH_LARGE_NUMBERS = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_bounded_float, parse_int=_bounded_int
)  # apart: a call for each number would be felt in a list of many files


def _may_be_deep(raw: bytes) -> bool:
    """Told by the brackets alone, without a walk: level by level they go away. Those in texts may make it a maybe."""
    brackets = raw.translate(None, _NOT_BRACKETS)
    for _ in range(DEEPEST):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return bool(brackets)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [item for each in level for item in _items(each)]
        if not level:
            return False
    return True


def _items(value: Any) -> list[Any]:
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in found if isinstance(item, (dict, list))]


def _has_half_characters(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
