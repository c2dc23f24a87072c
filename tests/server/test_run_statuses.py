"""Runs are found by the statuses that users see, also by the two that stand in no column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lapis.domain.run import LATE_SECONDS, RunRecord, RunState
from lapis.domain.run_filter import RunFilter
from lapis.server.control.runs import Runs
from lapis.server.control.stores import open_stores
from lapis.server.control.workspaces import new_experiment

NOW = 1000.0


def test_a_run_is_found_by_the_status_that_it_shows_page_by_page(tmp_path: Path) -> None:
    stores = open_stores(str(tmp_path))
    facts: list[dict[str, Any]] = [
        {"id": "lively", "state": RunState.RUNNING, "last_heard": NOW - 1},
        {"id": "silent", "state": RunState.RUNNING, "last_heard": NOW - LATE_SECONDS - 1},
        {"id": "leaving", "state": RunState.RUNNING, "last_heard": NOW - 1, "cancel_requested": True},
        {"id": "unwanted", "state": RunState.QUEUED, "cancel_requested": True},
        {"id": "queued", "state": RunState.QUEUED},
        {"id": "gone", "state": RunState.CANCELED},
    ]
    for each in facts:
        stores.runs.add(RunRecord(workspace_id="w", experiment="e", created_at=1.0, **each), new_experiment("e", 1.0))
    unused: Any = None
    runs = Runs(stores, unused, unused, unused, unused, unused, unused, unused, lambda: NOW, lambda: NOW)

    def found(*statuses: str) -> list[str]:
        names, cursor = [], None
        while True:
            where = RunFilter(workspace_id="w", states=statuses)
            page, cursor = runs.find(where, 1, cursor)
            names += [run.id for run in page]
            if cursor is None:
                return names

    assert found("CancelRequested") == ["unwanted", "leaving"]
    assert found("NotResponding") == ["silent"]
    assert found("Running") == ["lively"]
    assert found("Queued", "NotResponding", "Canceled") == ["gone", "queued", "silent"]
    assert found("Nonsense") == []
    runs._heard["silent"] = NOW - 1  # a sign of life is written down only now and then
    assert found("NotResponding") == [] and found("Running") == ["silent", "lively"]
    stores.database.close()
