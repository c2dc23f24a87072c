"""JSON files by which our processes tell each other things: whole or not there, and nobody else's to read."""

from __future__ import annotations

import json
from typing import Any

from lapis.machine import whole_files


def read(path: str) -> dict[str, Any] | None:
    """What the file says; None if there is none, or none that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def write(path: str, value: object, mode: int = 0o600) -> None:
    whole_files.write(path, json.dumps(value).encode(), mode)
