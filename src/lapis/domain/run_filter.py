"""Which runs somebody looks for, and in which order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from lapis.errors import UserErrorException

MAXIMIZE, MINIMIZE = "maximize", "minimize"


class Order(NamedTuple):
    """By a metric's best value, or by when runs were made where `metric` is None."""

    metric: str | None
    ascending: bool

    def query(self) -> dict[str, object]:
        """As the server takes it."""
        if self.metric is None:
            return {"oldest_first": True} if self.ascending else {}
        return {MINIMIZE if self.ascending else MAXIMIZE: self.metric}


class Bound(NamedTuple):
    """What a run's best value of a metric has to be: the greatest of it where more is asked for, else the least."""

    metric: str
    sign: str  # >, >=, <, <=
    number: float

    @property
    def goal(self) -> str:
        return MAXIMIZE if self.sign.startswith(">") else MINIMIZE

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{self.number!r}"


@dataclass(frozen=True)
class RunFilter:
    """Every field that is set narrows; the newest come first unless `oldest_first`, or the best `best_by` a metric."""

    workspace_id: str
    experiment: str | None = None
    parent_id: str | None = None
    root_id: str | None = None
    roots_only: bool = False
    type: str | None = None
    states: tuple[str, ...] = ()
    target: str | None = None
    tags: tuple[tuple[str, str | None], ...] = ()  # None: any value
    properties: tuple[tuple[str, str | None], ...] = ()
    bounds: tuple[Bound, ...] = ()
    archived: bool | None = False  # None: both
    oldest_first: bool = False
    best_by: tuple[str, str] | None = None  # (metric, "maximize" | "minimize")
    services: bool = False  # the runs that services live in too


def parse_order(text: str) -> Order:
    """`metric:accuracy`, `metric:loss:asc`, `created` or `created:asc`, as users write it."""
    words = text if isinstance(text, str) else ""
    what, colon, way = words.rpartition(":")
    if not colon or way not in ("asc", "desc"):
        what, way = words, "desc"
    kind, _, metric = what.partition(":")
    if what == "created" or (kind == "metric" and metric):
        return Order(metric or None, way == "asc")
    raise UserErrorException(
        f"{text!r} is no order of runs. Write 'metric:accuracy' for those with the greatest accuracy first, "
        "'metric:loss:asc' for those with the least loss, 'created' or 'created:asc'."
    )


_BOUND = re.compile(r"\s*(?P<metric>.+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<number>[^<>=]+)")


def parse_bound(text: str) -> Bound:
    """`accuracy>=0.9`, as users write it."""
    found = _BOUND.fullmatch(text) if isinstance(text, str) else None
    try:
        if found is not None:
            return Bound(found["metric"], found["sign"], float(found["number"]))
    except ValueError:
        pass
    raise UserErrorException(
        f"{text!r} does not compare a metric with a number. Write its name, one of > >= < <=, and the number, as in "
        "'accuracy>=0.9'."
    )
