"""Which runs somebody looks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunFilter:
    """Every field that is set narrows; the newest come first unless `oldest_first`."""

    workspace_id: str | None = None
    experiment: str | None = None
    parent_id: str | None = None
    root_id: str | None = None
    roots_only: bool = False
    type: str | None = None
    states: tuple[str, ...] = ()
    target: str | None = None
    tags: tuple[tuple[str, str | None], ...] = ()  # None: any value
    properties: tuple[tuple[str, str | None], ...] = ()
    archived: bool | None = False  # None: both
    oldest_first: bool = False
    best_by: tuple[str, str] | None = None  # (metric, "maximize" | "minimize")
    services: bool = False  # the runs that services live in too
