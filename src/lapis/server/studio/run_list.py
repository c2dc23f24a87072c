"""What a page of runs was asked for, as it stands in its address, and the metrics that it shows."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlencode

from lapis.domain.run import RunState, parse_label
from lapis.domain.run_filter import MAXIMIZE, MINIMIZE, Order, RunFilter, parse_bound, parse_order
from lapis.server.control.guard import Guarded

STATUSES = [state.value for state in RunState]
_MOST_COLUMNS = 4
_LOOKED_AT = 3  # runs, the first ones, for which metrics there are


class Asked(NamedTuple):
    experiment: str
    status: str
    tag: str
    where: str  # comparisons with a comma between
    sort: str

    @property
    def order(self) -> Order:
        return parse_order(self.sort or "created")

    def filter(self, workspace_id: str) -> RunFilter:
        metric, ascending = self.order
        return RunFilter(
            workspace_id=workspace_id,
            experiment=self.experiment or None,
            roots_only=True,
            states=(self.status,) if self.status else (),
            tags=(parse_label(self.tag),) if self.tag else (),
            bounds=tuple(parse_bound(text) for text in self.where.split(",") if text.strip()),
            oldest_first=ascending,
            best_by=None if metric is None else (metric, MINIMIZE if ascending else MAXIMIZE),
        )

    def address(self, **more: str) -> str:
        """Of the same list but for `more`."""
        return "?" + urlencode({name: value for name, value in {**self._asdict(), **more}.items() if value})

    def sorted_by(self, metric: str) -> str:
        """Where a click on the head of a column leads: the greatest first, then the least, then the newest."""
        order = self.order
        if order.metric != metric:
            return self.address(sort=f"metric:{metric}")
        return self.address(sort="" if order.ascending else f"metric:{metric}:asc")


class Column(NamedTuple):
    metric: str
    way: str  # ascending or descending, if the page goes by it
    values: dict[str, float | None]  # by run


def columns(control: Guarded, workspace_id: str, run_ids: list[str], asked: Asked) -> list[Column]:
    """The metric that the page goes by, and the first ones of its first runs. Of each the best where it goes by it."""
    order = asked.order
    names = {order.metric: None} if order.metric is not None else {}
    for run_id in run_ids[:_LOOKED_AT]:
        series = control.metrics.summaries(workspace_id, run_id)
        names.update((each["name"], None) for each in series if each["last"] is not None)
    found = []
    for name in list(names)[:_MOST_COLUMNS]:
        way, shown = "", "last"
        if name == order.metric:
            way, shown = ("ascending", "min") if order.ascending else ("descending", "max")
        found.append(Column(name, way, _shown(control.metrics.of_runs(workspace_id, run_ids, name), shown)))
    return found


def _shown(series: dict[str, list[dict[str, Any]]], which: str) -> dict[str, float | None]:
    return {run_id: each[0][which] for run_id, each in series.items() if each}
