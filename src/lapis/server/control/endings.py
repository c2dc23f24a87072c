"""How runs end: each with all that hangs on it, in one transaction.

A server that is killed meanwhile leaves a family that has ended, or one that has not, never a half of it. Whether a run
ends at once or is asked to stop is decided in the same transaction: one that an engine has, or is about to have, is
ended by nobody but its agent, or once all its processes are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lapis.domain import run as rules
from lapis.domain.run import RunRecord, RunState
from lapis.domain.sweeps import STOPPED_BY
from lapis.server.control.events import Events
from lapis.server.control.stores import Stores


class Endings:
    def __init__(
        self, stores: Stores, events: Events, now: Callable[[], float], ended: Callable[[RunRecord], None]
    ) -> None:
        """`ended` is called for each run that has, once that is committed. A start calls it again for what is left."""
        self._stores = stores
        self._events = events
        self._now = now
        self._ended = ended

    def change(self, workspace_id: str, run_id: str, how: Callable[[RunRecord], RunRecord]) -> RunRecord:
        """Change a run. If that ends it, what is below it ends with it, or is asked to stop."""
        lived = False

        def changed(stored: RunRecord) -> RunRecord:
            nonlocal lived
            lived = not stored.ended
            return how(stored)

        with self._stores.database.write():
            run = self._stores.runs.change(workspace_id, run_id, changed)
            if lived and run.ended:
                self._settle(run)
            self._events.tell(run.id)
        return run

    def end(
        self,
        run: RunRecord,
        state: RunState,
        reason: str,
        error: Mapping[str, Any] | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> RunRecord:
        """`facts` are properties that it gets with its end."""

        def apply(stored: RunRecord) -> RunRecord:
            stored = stored._replace(properties={**stored.properties, **facts}) if facts else stored
            return rules.end(stored, state, reason=reason, at=self._now(), error=error)

        return self.change(run.workspace_id, run.id, apply)

    def cancel(self, workspace_id: str, run_id: str, reason: str, stopped_by: str | None = None) -> RunRecord:
        """Works in any state. A run that has ended stays as it ended."""

        def apply(stored: RunRecord) -> RunRecord:
            if stopped_by is not None and not stored.ended:
                stored = rules.set_properties(stored, {STOPPED_BY: stopped_by})
            return self._stopped(stored, reason)

        return self.change(workspace_id, run_id, apply)

    def fail(self, workspace_id: str, run_id: str, error: Mapping[str, Any], stop: bool) -> RunRecord:
        """Its agent has the last word, and finds that the run has failed whatever the exit status is."""

        def apply(stored: RunRecord) -> RunRecord:
            if stored.ended or stored.job is None or stored.handle is None:
                return rules.end(stored, RunState.FAILED, reason=str(error["message"]), at=self._now(), error=error)
            self._events.wake()
            return stored._replace(error=error, cancel_requested=stored.cancel_requested or stop)

        return self.change(workspace_id, run_id, apply)

    def finish(self) -> None:
        """What a server that ended runs one by one left half done when it was killed."""
        for parent, child in self._stores.runs.left_behind():
            self.change(child.workspace_id, child.id, partial(self._without, parent))

    def _settle(self, run: RunRecord) -> None:
        """Within the transaction that ended `run`: let nothing below it linger."""
        fresh = [run]
        while fresh:
            parent = fresh.pop()
            self._stores.database.after_commit(partial(self._ended, parent))
            if parent.job is not None:
                self._events.wake()  # its slot is free
            for child in self._stores.runs.living_children(parent.workspace_id, parent.id):
                child = self._stores.runs.change(child.workspace_id, child.id, partial(self._without, parent))
                self._events.tell(child.id)
                if child.ended:
                    fresh.append(child)

    def _without(self, parent: RunRecord, child: RunRecord) -> RunRecord:
        """`child` once its parent has ended. One that has a life of its own goes on if the parent completed."""
        if parent.state is not RunState.COMPLETED:
            return self._stopped(child, f"its parent {parent.id} ended early")
        if child.job is not None or child.conducts:
            return child
        reason = f"Its parent {parent.id} completed"
        return rules.end(child, RunState.COMPLETED, reason=reason, at=self._now())

    def _stopped(self, run: RunRecord, reason: str) -> RunRecord:
        """`run` asked to stop, if there is somebody who would say how it ended; else ended."""
        if run.ended or run.cancel_requested:
            return run
        if not run.conducts and (run.job is None or run.handle is None):
            return rules.end(run, RunState.CANCELED, reason=reason, at=self._now())
        self._events.wake()
        asked = run._replace(cancel_requested=True)
        return rules.note(asked, f"Asked to stop: {reason}", at=self._now(), until="ends when it has stopped")
