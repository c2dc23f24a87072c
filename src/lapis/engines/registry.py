"""Names to engines, imported late, with the way out when something is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from lapis.engines.base import Engine
from lapis.errors import ComputeTargetException
from lapis.machine.extras import how_to_get


@dataclass(frozen=True)
class Entry:
    path: str
    extra: str = ""


ENGINES = {
    "local": Entry("lapis.engines.local:LocalEngine"),
    "ray": Entry("lapis.engines.ray:RayEngine", "ray"),
}


def make(name: str, work: str, settings: Mapping[str, Any] | None = None) -> Engine:
    """An engine whose jobs have their folders below `work`, for targets with these settings."""
    entry = ENGINES.get(name)
    if entry is None:
        raise ComputeTargetException(f"No engine named '{name}'. Known: {', '.join(ENGINES)}.")
    module, cls = entry.path.split(":")
    try:
        found = getattr(import_module(module), cls)
    except ImportError as missing:
        raise ComputeTargetException(
            f"Engine '{name}' needs the package '{missing.name}': {how_to_get(entry.extra)}."
        ) from missing
    return cast(Engine, found(work, **(settings or {})))
