"""A run's token ends with its run: whether it opens anything is asked of the run itself, not of a date."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from lapis.domain.run import RunRecord
from lapis.errors import NotFound, TokenEnded
from lapis.server.control.access import Actor
from lapis.server.control.stores import Stores

GRACE = 600.0  # seconds after the last word of an agent in which it may say it again: the reply may have been lost
_LOOK_EVERY = 1.0  # seconds; an end that we bring about ourselves is known at once
_MOST_KNOWN = 10_000


class RunTokens:
    def __init__(self, stores: Stores, now: Callable[[], float]) -> None:
        self._runs = stores.runs
        self._now = now
        self._live: dict[tuple[str, str], float] = {}  # runs that had not ended when we looked, and when that was

    def admit(self, actor: Actor) -> Actor:
        """Whoever has a run's token, as long as the run goes on; its agent a while longer, to report and no more."""
        if actor.workspace_id is None or actor.run_id is None:
            return actor
        key, moment = (actor.workspace_id, actor.run_id), time.monotonic()
        if moment - self._live.get(key, -_LOOK_EVERY) < _LOOK_EVERY:
            return actor
        run = self._look(*key)
        if not run.ended:
            if len(self._live) >= _MOST_KNOWN:
                self._live.clear()
            self._live[key] = moment
            return actor
        if actor.kind == "agent" and self._now() - (run.last_heard or 0.0) < GRACE:
            return replace(actor, ended=True)
        raise TokenEnded(f"Run {run.id} has ended ({run.state.value}), and its token with it.")

    def ended(self, run: RunRecord) -> None:
        """The run has just ended."""
        self._live.pop((run.workspace_id, run.id), None)

    def _look(self, workspace_id: str, run_id: str) -> RunRecord:
        try:
            return self._runs.get(workspace_id, run_id)
        except NotFound:
            raise TokenEnded(f"Run {run_id} was deleted, and its token ended with it.") from None
