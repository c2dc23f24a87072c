"""What runs have logged, as those who draw it need it. What SDK v1 makes of it is Runs.metrics."""

from __future__ import annotations

from typing import Any

from lapis.domain.metrics import Point
from lapis.domain.run_filter import MAXIMIZE
from lapis.server.control.stores import Stores


class Metrics:
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def summaries(self, workspace_id: str, run_id: str) -> list[dict[str, Any]]:
        """Every series of a run: how many points, the last one, the least and the greatest."""
        self._stores.runs.get(workspace_id, run_id)
        return self._stores.metrics.summaries(workspace_id, [run_id])[run_id]

    def of_runs(self, workspace_id: str, run_ids: list[str], name: str) -> dict[str, list[dict[str, Any]]]:
        """The same of one series in many runs, by run."""
        return self._stores.metrics.summaries(workspace_id, run_ids, name)

    def best_of(self, workspace_id: str, run_ids: list[str], name: str, goal: str) -> dict[str, float | None]:
        """The greatest value of a series in each of these runs, or the least."""
        which = "max" if goal == MAXIMIZE else "min"
        found = self._stores.metrics.summaries(workspace_id, run_ids, name)
        return {run_id: series[0][which] for run_id, series in found.items() if series}

    def curve(self, workspace_id: str, run_id: str, name: str, most: int) -> list[tuple[float, int | None, float]]:
        """At most `most` (time, step, number) of a series, thinned to what a chart can show."""
        self._stores.runs.get(workspace_id, run_id)
        return self._stores.metrics.curve(workspace_id, run_id, name, most)

    def points(self, workspace_id: str, run_id: str, name: str) -> list[Point]:
        return self._stores.metrics.points(workspace_id, [run_id], name)[run_id]
