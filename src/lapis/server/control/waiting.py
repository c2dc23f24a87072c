"""Why runs wait. The reconciler sees it with every pass; it is told and never stored."""

from __future__ import annotations

from lapis.domain.run import RunRecord, RunState

Wait = tuple[str, str]  # why, and what ends it


class WaitingRuns:
    """What the reconciler saw last, for whoever shows a run."""

    def __init__(self, max_runs: int) -> None:
        self.max_runs = max_runs
        self.places: dict[str, int] = {}  # in the queue of this machine, by run
        self.for_nodes: dict[str, Wait] = {}  # of a compute target
        self.troubled: dict[str, Wait] = {}  # they could not be started: it is tried again
        self.for_room: dict[str, Wait] = {}  # in the cluster that they were handed to

    def why(self, run: RunRecord) -> Wait | None:
        """Why a queued run waits, and what ends it; None if it does not."""
        if run.state is not RunState.QUEUED:
            return None
        if run.id in self.troubled:
            return self.troubled[run.id]
        if run.id in self.for_room:
            return self.for_room[run.id]
        if run.id in self.for_nodes:
            return self.for_nodes[run.id]
        place = self.places.get(run.id)
        if place is None:
            return None
        ahead = f"{place - 1} ahead of it" if place > 1 else "the next one"
        return (
            f"In the queue of '{run.target}': {ahead}, and all {self.max_runs} slots are taken (LAPIS_MAX_RUNS)",
            "ends when a run that runs now ends",
        )
