"""What differs between two environments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from lapis.environments.cache import pins
from lapis.environments.values import Lock

Contents = Mapping[str, str]  # Python, variables and packages: each with its version or value


def differences(one: Contents, other: Contents) -> list[tuple[str, str, str]]:
    """Names with what each of the two has, empty where it has none. Python first, then by name."""
    names = sorted({*one, *other}, key=lambda name: (name != "Python", name.lower()))
    return [(name, one.get(name, ""), other.get(name, "")) for name in names if one.get(name) != other.get(name)]


def of_lock(lock: Lock) -> Contents:
    variables = {f"${name}": value for name, value in lock.variables.items()}
    shims = {f"help for old code: {name}": "yes" for name in lock.shims}
    return {"Python": lock.python, **variables, **shims, **pins(lock)}


def of_text(text: str) -> Contents:
    """Of a lock.json, or of a run's environment.lock.txt: a requirements file with remarks that name the Python."""
    if text.lstrip().startswith("{"):
        return of_lock(Lock.from_json(json.loads(text)))
    python = re.search(r"^# Environment .*: Python (\S+?),", text, re.MULTILINE)
    return of_lock(Lock(python[1] if python else "", "", text))
