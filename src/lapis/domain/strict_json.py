"""JSON as it comes in from outside: only what can be kept, shown and sent on by everybody.

Python takes more than JSON has: `NaN`, numbers without bound, half a character, and nesting that breaks whatever walks
through it. All of that is an error here, so nothing behind this door has to think of it.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

from lapis.domain.limits import JSON_DEPTH as DEEPEST
from lapis.domain.limits import shown
from lapis.errors import UserErrorException

LARGEST = 2**63 - 1  # what a database and other languages take for a whole number
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_ODD_NUMBER = re.compile("[0-9]{19}|NaN|Infinity|[eE][+]?[0-9]{3}")  # may be one, or part of a text
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def decode(body: bytes | bytearray | memoryview) -> Any:
    """The value that a body stands for. UserErrorException, which says what is wrong with it, for anything else."""
    raw = bytes(body)
    try:
        text = raw.decode()
        value = json.loads(text)
    except UnicodeDecodeError:
        raise UserErrorException("The request cannot be read: it is not UTF-8.") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as fault:
        raise UserErrorException(f"The request cannot be read: it is not JSON ({fault}).") from None
    if _may_be_deep(raw) and _is_deep(value):
        raise _too_deep()
    if _HALF_CHARACTER.search(text) and _has_half_characters(value):
        raise UserErrorException("The request cannot be read: a text in it holds half a character (a lone surrogate).")
    if _ODD_NUMBER.search(text) and _ODD_NUMBER.search(_without_texts(text)):
        _check_numbers("", value)
    return value


def _too_deep() -> UserErrorException:
    return UserErrorException(f"The request cannot be read: it is nested more than {DEEPEST} levels deep.")


def _without_texts(text: str) -> str:
    """What stands outside of quotes, where that is easily told: a hash looks like an odd number too."""
    return text if "\\" in text else " ".join(text.split('"')[::2])


def _check_numbers(place: str, value: Any) -> None:
    """Raise for a number that nobody can keep, and say where it stands."""
    if isinstance(value, dict):
        for name, item in value.items():
            _check_numbers(f"{place}.{name}" if place else name, item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_numbers(f"{place}[{index}]", item)
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise UserErrorException(
            f"The request cannot be read: {place[:200] or 'it'} is {shown(value)}, more than a whole number can be "
            f"(at most {LARGEST})."
        )
    elif isinstance(value, float) and not isfinite(value):
        raise UserErrorException(
            f"The request cannot be read: {place[:200] or 'it'} is {value}, and no number in JSON."
        )


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
