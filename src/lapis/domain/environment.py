"""What an environment is called when people are told of it, and whether its definition can be read."""

from __future__ import annotations

from typing import Any, Mapping

from lapis.errors import UserErrorException

_TEXT, _TEXTS, _SECTION = "text", "a list of texts", "a dictionary"
_SHAPE: Mapping[str, Any] = {
    "name": _TEXT,
    "python": {
        "interpreterPath": _TEXT,
        "condaDependencies": {"name": _TEXT, "channels": _TEXTS, "dependencies": "a list of packages"},
    },
    "docker": {
        "baseImage": _TEXT,
        "baseDockerfile": _TEXT,
        "baseImageRegistry": {"address": _TEXT, "username": _TEXT, "password": _TEXT},
        "arguments": _TEXTS,
        "shmSize": _TEXT,
    },
    "environmentVariables": {},
}


def check_definition(definition: Any, shape: Mapping[str, Any] = _SHAPE, where: str = "definition") -> None:
    """Raise if a part of it that is looked at is of another kind than it must be. What is null is not there."""
    if not isinstance(definition, dict):
        raise UserErrorException(f"The environment cannot be read: {where} must be {_SECTION}.")
    for name, kind in shape.items():
        value, place = definition.get(name), f"{where}.{name}"
        if value is None:
            continue
        if isinstance(kind, Mapping):
            check_definition(value, kind, place)
        elif not _is(kind, value):
            raise UserErrorException(f"The environment cannot be read: {place} must be {kind}.")


def _is(kind: str, value: Any) -> bool:
    if kind == _TEXT:
        return isinstance(value, str)
    if not isinstance(value, list):
        return False
    return all(isinstance(each, str) or (kind != _TEXTS and _is_pip_section(each)) for each in value)


def _is_pip_section(value: Any) -> bool:
    """The packages of pip among those of conda."""
    return isinstance(value, dict) and all(_is(_TEXTS, lines or []) for lines in value.values())


def called(name: str | None) -> str:
    """In the midst of a sentence. That of a RunConfiguration has no name."""
    return f"environment '{name}'" if name else "the environment of this run"


def called_first(name: str | None) -> str:
    """At the beginning of a sentence."""
    return f"Environment '{name}'" if name else "The environment of this run"
