"""A run as clients see it: with its status and stages worked out, without what is the server's alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lapis.domain import run as rules
from lapis.domain.run import RunRecord
from lapis.domain.secrets import starred
from lapis.server.control.access import SERVER, Actor
from lapis.server.control.pipelines import Pipelines
from lapis.server.control.sweeps import Sweeps
from lapis.server.control.waiting import WaitingRuns


class RunViews:
    def __init__(
        self,
        waiting: WaitingRuns,
        sweeps: Sweeps,
        pipelines: Pipelines,
        now: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._waiting = waiting
        self._sweeps = sweeps
        self._pipelines = pipelines
        self._now, self._steady = now, steady

    def of(self, run: RunRecord, *, by: Actor = SERVER) -> dict[str, Any]:
        body = run._replace(job=None, sweep=None, pipeline=None).to_json()
        if by.kind == "viewer" and run.definition is not None:
            body["definition"] = {**run.definition, "environment": starred(run.definition.get("environment"))}
        for ours in ("nonce", "handle", "job", "pipeline", "launches", "made_by"):
            body.pop(ours)
        body["sweep"] = None if run.sweep is None else run.sweep.spec
        body["status"] = rules.status(run, self._steady())
        body["started_at"] = run.started_at
        body["ended_at"] = run.ended_at
        body["stages"] = rules.stages(run, self._now())
        body.pop("history")
        waiting = self._waiting.why(run) or self._sweeps.progress(run) or self._pipelines.progress(run)
        if waiting is not None and body["stages"]:
            body["stages"][-1].update(reason=waiting[0], until=waiting[1])
        return body
