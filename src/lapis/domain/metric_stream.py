"""How what runs logged travels to whoever asks for it: as it is stored, so that neither side looks at single values.

First a JSON line that names the runs. Then for each stretch of a series a JSON line that says whose it is, followed by
the values as `lapis.domain.columns` packs them. A series comes in as many stretches as it takes, in the order logged.
"""

from __future__ import annotations

import json
from typing import Any, Iterable

from lapis.domain.columns import unpack
from lapis.domain.metrics import Stretch, assemble_series
from lapis.errors import Unavailable


def opening(run_ids: Iterable[str]) -> bytes:
    return _line({"runs": list(run_ids)})


def stretch(run_id: str, name: str, kind: str, count: int, packed: bytes) -> bytes:
    return _line({"run": run_id, "name": name, "kind": kind, "count": count, "bytes": len(packed)}) + packed


class Reader:
    """Is fed with what comes, in whatever pieces."""

    def __init__(self) -> None:
        self._held = b""
        self._found: dict[str, dict[str, list[Stretch]]] = {}

    def feed(self, data: bytes) -> None:
        held = self._held + data if self._held else data
        start = 0
        while True:
            line = held.find(b"\n", start) + 1
            head = json.loads(held[start:line]) if line else {}
            end = line + head.get("bytes", 0)
            if not line or end > len(held):
                break
            self._take(head, held[line:end])
            start = end
        self._held = held[start:]

    def metrics(self) -> dict[str, dict[str, Any]]:
        """By run and name, what `Run.get_metrics` gives."""
        if self._held:
            raise Unavailable("The connection was lost while metrics were read. Try again.")
        return {
            run_id: {name: assemble_series(stretches) for name, stretches in series.items()}
            for run_id, series in self._found.items()
        }

    def _take(self, head: dict[str, Any], packed: bytes) -> None:
        if "runs" in head:
            self._found.update((run_id, {}) for run_id in head["runs"])
        else:
            series = self._found[head["run"]].setdefault(head["name"], [])
            series.append(Stretch(head["kind"], unpack(packed, head["count"])))


def _line(head: dict[str, Any]) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode() + b"\n"
