"""The names and values that a key vault takes, as Azure's does."""

from __future__ import annotations

import re
from typing import Any

from lapis.errors import UserErrorException

MOST_AT_ONCE = 1000
_NAME = re.compile(r"[0-9a-zA-Z-]{1,127}")
_LARGEST = 25 * 1024  # bytes


def check_secret_name(name: Any) -> str:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        shown = repr(name) if len(repr(name)) <= 150 else f"{repr(name)[:150]}..."
        raise UserErrorException(f"A secret's name is 1 to 127 letters, digits and dashes; {shown} cannot be one.")
    return name


def check_secret_value(name: str, value: Any) -> str:
    """The error does not repeat the value: it may be the secret all the same."""
    if not isinstance(value, str) or not value:
        raise UserErrorException(f"The value of secret '{name}' must be text that is not empty.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise UserErrorException(f"The value of secret '{name}' is no text that UTF-8 can hold.") from None
    if size > _LARGEST:
        raise UserErrorException(f"The value of secret '{name}' has {size} bytes; a secret has {_LARGEST} at most.")
    return value
