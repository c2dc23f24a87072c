"""A pipeline as a value: its steps, what each reads of the others, and which outputs are the whole's.

Nothing in it belongs to one run of it: `{run-id}` stands for the run of the step that writes what is spoken of, and is
filled in when that run is known. It may be an earlier one, whose outputs are used again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Mapping

from lapis.domain import limits
from lapis.domain.job import DatasetInput, Job, Output, Reference
from lapis.domain.values import SET_BY_SERVER, Kept, Value, at_most, one_of, within

WRITER = "{run-id}"  # the run that writes it
_NAME = at_most(limits.NAME)
_NUMBER = within(0, limits.ITEMS)


@dataclass(frozen=True)
class FromStep(Value):
    """What another step writes, as an input of this one."""

    step: int = field(metadata=_NUMBER)  # which of the pipeline's
    output: str = field(metadata=_NAME)
    input: DatasetInput | Reference

    def of_run(self, run_id: str) -> DatasetInput | Reference:
        """As the reader gets it, once it is known who wrote it."""
        return type(self.input).from_json(json.loads(json.dumps(self.input.to_json()).replace(WRITER, run_id)))


@dataclass(frozen=True)
class TrainedOutput(Value):
    """An output of a search that no script writes: the metrics of all its runs, or a file of the best one."""

    output: str = field(metadata=_NAME)
    kind: str = field(metadata=one_of("Metrics", "Model"))
    file: str | None = field(default=None, metadata=at_most(limits.PATH))  # or folder, of the best run


@dataclass(frozen=True)
class StepPlan(Value):
    """What one step runs. Its job lacks what other steps write."""

    name: str = field(metadata=_NAME)
    job: Job
    snapshot_id: str = field(metadata=_NAME)
    target: str = field(default="local", metadata=_NAME)
    type: str = field(default="PythonScriptStep", metadata=_NAME)
    inputs: tuple[FromStep, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict)  # what is searched for: the job is that of each run of it
    trained: tuple[TrainedOutput, ...] = ()
    after: tuple[int, ...] = ()  # steps that it waits for, beside those that it reads from
    allow_reuse: bool = True
    version: str | None = field(default=None, metadata=_NAME)
    definition: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    uses: tuple[tuple[str, ...], ...] = ()  # asset id, role, name in the run
    notices: tuple[str, ...] = ()

    @property
    def needs(self) -> frozenset[int]:
        """The steps that have to complete before it starts."""
        return frozenset(self.after).union(each.step for each in self.inputs)

    def output(self, name: str) -> Output | None:
        return next((each for each in self.job.outputs if each.name == name), None)

    def outputs_of(self, run_id: str) -> tuple[Output, ...]:
        """All that it writes, once it is known which run does."""
        return tuple(each.of_run(WRITER, run_id) for each in self.job.outputs)

    def fault(self) -> str:
        if any(self.output(each.output) is None for each in self.trained):
            return "has a trained output that is none of its outputs."
        return "" if all(len(use) == 3 for use in self.uses) else "has uses that are not asset id, role and name."


@dataclass(frozen=True)
class WholeOutput(Value):
    """An output of a step that is one of the pipeline's own."""

    step: int = field(metadata=_NUMBER)
    output: str = field(metadata=_NAME)


@dataclass(frozen=True)
class PipelinePlan(Kept):
    steps: tuple[StepPlan, ...] = ()
    outputs: Mapping[str, WholeOutput] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)  # as they were assigned
    continue_on_step_failure: bool = False
    regenerate_outputs: bool = False
    wrong: tuple[str, ...] = field(default=(), metadata=SET_BY_SERVER)

    def fault(self) -> str:
        if not self.steps:
            return "has no steps: there is nothing to run."
        for step in self.steps:
            unknown = [each for each in sorted(step.needs) if not 0 <= each < len(self.steps)]
            if unknown:
                return f"has a step '{step.name}' that waits for step {unknown[0]}, which is not there."
            for each in step.inputs:
                if self.steps[each.step].output(each.output) is None:
                    return f"has a step '{step.name}' that reads '{each.output}' of '{self.steps[each.step].name}', " \
                        "which writes no such output."  # fmt: skip
        for name, whole in self.outputs.items():
            if whole.step >= len(self.steps) or self.steps[whole.step].output(whole.output) is None:
                return f"has an output '{name}' that no step writes."
        circle = circle_in([step.needs for step in self.steps])
        names = [self.steps[number].name for number in circle]
        return f"has steps that wait for each other: {in_a_circle(names)}" if circle else ""


@dataclass(frozen=True)
class KeptPlan(Kept):
    """Where the plan of a run lies: as a blob, for it is large, and a run is read often."""

    plan: str = ""  # the blob's hash
    names: tuple[str, ...] = ()  # every other hash that stands in it: what it needs is not to be collected
    wrong: tuple[str, ...] = field(default=(), metadata=SET_BY_SERVER)


def circle_in(needs: Any) -> list[int]:
    """Steps that wait for each other in a circle, each for the next; empty if there is none."""
    left = {number: set(each) for number, each in enumerate(needs)}
    waiting: dict[int, list[int]] = {}
    for number, each in left.items():
        for need in each:
            waiting.setdefault(need, []).append(number)
    free = [number for number, each in left.items() if not each]
    while free:
        done = free.pop()
        del left[done]
        for number in waiting.get(done, ()):
            left[number].discard(done)
            if not left[number]:
                free.append(number)
    if not left:
        return []
    path, seen = [min(left)], {min(left)}
    while True:  # what is left waits for something that is left
        following = min(left[path[-1]])
        if following in seen:
            return path[path.index(following) :]
        path.append(following)
        seen.add(following)


def in_a_circle(names: Any) -> str:
    shown = [f"'{name}'" for name in names]
    return " waits for ".join([*shown, shown[0]]) + "."
