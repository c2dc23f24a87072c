"""Which packages an interpreter has, by the names of their folders: importlib.metadata would read every one."""

from __future__ import annotations

import os
from typing import Iterable


def installed_versions(search_path: Iterable[str]) -> dict[str, str]:
    """The packages in these folders by their names. Where two folders have one, the first counts."""
    found: dict[str, str] = {}
    for folder in search_path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            if entry.endswith((".dist-info", ".egg-info")):
                name, _, version = entry.rpartition(".")[0].partition("-")
                found.setdefault(name.replace("_", "-").lower(), version.partition("-")[0])
    return found
