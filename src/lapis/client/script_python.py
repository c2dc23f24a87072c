"""The interpreter that a script gets when nothing else is said: the one that submits it."""

from __future__ import annotations

import sys

_of_the_client = ""


def script_python() -> str:
    return _of_the_client or sys.executable


def use(path: str) -> None:
    """Somebody else submits through us: the `lapis` command, when it runs in the server's environment."""
    global _of_the_client
    _of_the_client = path
