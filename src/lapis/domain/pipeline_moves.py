"""What a pipeline does next: a pure function of its plan and of what its steps did so far.

A step's run has an id that is made of the pipeline's and of its number. So whoever decides again, after a crash, finds
what was started, and starting it again is no second start.
"""

from __future__ import annotations

import hashlib
from typing import AbstractSet, Mapping, NamedTuple, Sequence

from lapis.domain.run import RunState

LOG = "logs/azureml/executionlogs.txt"
REUSED_RUN = "azureml.reusedrunid"  # properties of a step's run that was not run again, by SDK v1's names
REUSED_PIPELINE_RUN = "azureml.reusedpipelinerunid"
COMPLETED, FAILED, CANCELED = (state.value for state in (RunState.COMPLETED, RunState.FAILED, RunState.CANCELED))


class Shape(NamedTuple):
    """As much of a plan as deciding needs."""

    names: Sequence[str]
    needs: Sequence[AbstractSet[int]]
    go_on_after_failure: bool = False


class End(NamedTuple):
    state: str
    reason: str


class Decision(NamedTuple):
    start: list[int]
    stop: list[int]
    end: End | None = None


def decide(
    shape: Shape, steps: Mapping[int, str | None], asked_to_stop: AbstractSet[int] = frozenset(), cancel: bool = False
) -> Decision:
    """`steps` are those that were started: how each ended, None while it has not."""
    live = [number for number, state in steps.items() if state is None]
    bad = sorted(number for number, state in steps.items() if state in (FAILED, CANCELED))
    if cancel or (bad and not shape.go_on_after_failure):
        stop = [number for number in live if number not in asked_to_stop]
        return Decision([], stop, None if live else _end(shape, steps, bad, cancel))
    start = [
        number
        for number, needs in enumerate(shape.needs)
        if number not in steps and all(steps.get(need) == COMPLETED for need in needs)
    ]
    return Decision(start, [], None if live or start else _end(shape, steps, bad, cancel))


def _end(shape: Shape, steps: Mapping[int, str | None], bad: Sequence[int], cancel: bool) -> End:
    left = len(shape.names) - len(steps)
    if cancel:
        return End(CANCELED, "The pipeline was cancelled" + _not_run(left))
    if not bad:
        return End(COMPLETED, f"All {len(steps)} steps have completed")
    said = ", ".join(f"'{shape.names[number]}' {'failed' if steps[number] == FAILED else 'was cancelled'}"
                     for number in bad[:5])  # fmt: skip
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    return End(FAILED, f"Step {said}{more}{_not_run(left)}")


def _not_run(count: int) -> str:
    return "" if not count else ", and 1 step was not run" if count == 1 else f", and {count} steps were not run"


def step_run_id(pipeline_run_id: str, number: int) -> str:
    return f"{pipeline_run_id}_{number}"


def node_id(name: str, number: int) -> str:
    """Eight digits that tell the nodes of a graph apart, the same whenever the pipeline is built again."""
    return hashlib.sha256(f"{name}/{number}".encode()).hexdigest()[:8]


def number_of(pipeline_run_id: str, run_id: str) -> int:
    """Which step a run is of; -1 if it is of none."""
    tail = run_id[len(pipeline_run_id) + 1 :]
    return int(tail) if run_id.startswith(pipeline_run_id + "_") and tail.isdigit() else -1
