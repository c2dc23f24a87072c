"""The engines of this server: made when the first target asks for one, shared by all that ask for the same."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from lapis.engines import registry
from lapis.engines.base import Engine

LOCAL = "local"


class Fleet:
    def __init__(self, home: str) -> None:
        self._home = home
        self._made: dict[str, Engine] = {}
        self.engine(LOCAL)

    def engine(self, name: str, settings: Mapping[str, Any] | None = None) -> Engine:
        key = name if not settings else f"{name} {json.dumps(dict(settings), sort_keys=True)}"
        if key not in self._made:
            self._made[key] = registry.make(name, os.path.join(self._home, "work"), settings or {})
        return self._made[key]

    def warm(self) -> None:
        self._made[LOCAL].warm()

    def close(self) -> None:
        for engine in self._made.values():
            engine.close()
