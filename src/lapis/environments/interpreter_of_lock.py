"""The Python that a lock was made for."""

from __future__ import annotations

from lapis.environments.values import Lock
from lapis.errors import UserErrorException
from lapis.machine.interpreters import Interpreter, interpreters


def interpreter_of(lock: Lock) -> Interpreter:
    """The one that a lock was made for: inside its image, among its conda packages, or on this machine."""
    if lock.conda:
        return Interpreter("", lock.python, "conda channel")
    return Interpreter(lock.interpreter, lock.python, "image") if lock.image else interpreter_for(lock.python)


def interpreter_for(version: str) -> Interpreter:
    """One of exactly that version, which a lock was made for."""
    found = interpreters()
    for each in found:
        if each.version == version:
            return each
    known = ", ".join(each.version for each in found)
    raise UserErrorException(
        f"Python {version}, which the environment was locked for, is not on this machine any more. There are: {known}. "
        "Submit again: the environment is resolved anew."
    )
