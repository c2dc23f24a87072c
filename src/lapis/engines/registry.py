"""Names to engines, imported late, with the way out when something is missing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from lapis.engines.base import Engine
from lapis.errors import ComputeTargetException


@dataclass(frozen=True)
class Entry:
    path: str
    extra: str = ""


ENGINES = {
    "local": Entry("lapis.engines.local:LocalEngine"),
}


def make(name: str, *arguments: str) -> Engine:
    entry = ENGINES.get(name)
    if entry is None:
        raise ComputeTargetException(f"No engine named '{name}'. Known: {', '.join(ENGINES)}.")
    module, cls = entry.path.split(":")
    try:
        found = getattr(import_module(module), cls)
    except ImportError as missing:
        raise ComputeTargetException(
            f"Engine '{name}' needs the package '{missing.name}': pip install 'lapis-ml[{entry.extra}]'."
        ) from missing
    return cast(Engine, found(*arguments))
