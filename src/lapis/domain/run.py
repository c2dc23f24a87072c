"""A run as a value, and the table of moves it may make. Nothing else in this code base changes a run's state."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple

from lapis.domain import limits
from lapis.errors import Conflict, UserErrorException

if TYPE_CHECKING:
    from lapis.domain.job import Job, Search
    from lapis.domain.launch import Owner
    from lapis.domain.pipeline import KeptPlan

SCRIPT_RUN = "azureml.scriptrun"
SWEEP = "hyperdrive"
PIPELINE_RUN = "azureml.PipelineRun"
STEP_RUN = "azureml.StepRun"
NAME_PATTERN = re.compile(r"[a-zA-Z0-9][\w-]{0,254}", re.ASCII)
ID_PATTERN = re.compile(r"[a-zA-Z0-9][\w-]{0,255}", re.ASCII)

LATE_SECONDS = 30.0  # without a word from the agent for this long, a run shows as NotResponding


class RunState(str, Enum):
    NOT_STARTED = "NotStarted"
    PREPARING = "Preparing"
    QUEUED = "Queued"
    RUNNING = "Running"
    FINALIZING = "Finalizing"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"

    __str__ = str.__str__


S = RunState
ENDED = frozenset({S.COMPLETED, S.FAILED, S.CANCELED})
_EARLY = frozenset({S.FAILED, S.CANCELED})
_NEXT: Mapping[RunState, frozenset[RunState]] = {
    S.NOT_STARTED: frozenset({S.PREPARING, S.RUNNING}) | _EARLY,  # Running: nothing to launch, it lives elsewhere
    S.PREPARING: frozenset({S.QUEUED}) | _EARLY,
    S.QUEUED: frozenset({S.RUNNING}) | _EARLY,
    S.RUNNING: frozenset({S.QUEUED, S.FINALIZING}) | _EARLY,  # back to Queued: its nodes went away
    S.FINALIZING: frozenset({S.COMPLETED}) | _EARLY,
    S.COMPLETED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELED: frozenset(),
}


class Step(NamedTuple):
    """One event in a run's life: when, in which state, and why. `until` says what would end a wait."""

    at: float
    state: str
    reason: str
    until: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"at": self.at, "state": self.state, "reason": self.reason, "until": self.until}


class RunRecord(NamedTuple):
    id: str
    workspace_id: str
    experiment: str
    created_at: float
    number: int = 0
    type: str | None = None
    parent_id: str | None = None
    root_id: str | None = None
    display_name: str | None = None
    description: str | None = None
    target: str | None = None
    state: RunState = S.NOT_STARTED
    history: tuple[Step, ...] = ()
    cancel_requested: bool = False
    tags: Mapping[str, str | None] = {}
    properties: Mapping[str, str] = {}
    definition: Mapping[str, Any] | None = None  # Azure's runDefinition, as it was submitted
    job: Job | None = None  # what an engine is to launch; None: the run lives in its owner's process
    sweep: Search | None = None  # of a hyperparameter search
    pipeline: KeptPlan | None = None  # of a pipeline
    owner: Owner | None = None  # the process that an interactive run lives in
    handle: Mapping[str, Any] | None = None  # what the engine gave back
    launches: int = 0
    attempt: int = 0  # how often it had to begin anew because its nodes went away
    nodes: tuple[Mapping[str, Any], ...] = ()  # what the agents of its nodes told of themselves, by their number
    snapshot_id: str | None = None
    error: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    created_by: str | None = None
    made_by: str | None = None  # the run whose script began this one beside itself, and may go on with it
    last_heard: float | None = None
    archived_at: float | None = None
    nonce: str | None = None  # the client's own mark: a repeated create is the same create
    revision: int = 0

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def conducts(self) -> bool:
        """Whether it is a search or a pipeline: the server starts runs below it, and it ends when they have."""
        return self.sweep is not None or self.pipeline is not None

    @property
    def started_at(self) -> float | None:
        return next((step.at for step in self.history if step.state == S.RUNNING), None)

    @property
    def ended_at(self) -> float | None:
        return self.history[-1].at if self.ended and self.history else None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = self._asdict()
        body["state"] = self.state.value
        body["history"] = [step.to_json() for step in self.history]
        for part in ("job", "sweep", "pipeline", "owner"):
            if body[part] is not None:
                body[part] = body[part].to_json()
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RunRecord:
        values = dict(body) if body.keys() <= _FIELDS else {key: body[key] for key in body.keys() & _FIELDS}
        values["state"] = RunState(values["state"])
        values["history"] = tuple([Step(**step) for step in values.get("history", ())])
        values["warnings"] = tuple(values.get("warnings", ()))
        values["nodes"] = tuple(values.get("nodes", ()))
        for part, kind in _parts().items():
            if values.get(part) is not None:
                values[part] = kind.from_json(values[part])
        return cls(**values)


_FIELDS = frozenset(RunRecord._fields)


@lru_cache(maxsize=None)
def _parts() -> dict[str, Any]:
    """The fields that are values of their own. Late: a script that logs needs none of them, and classes take time."""
    from lapis.domain.job import Job, Search
    from lapis.domain.launch import Owner
    from lapis.domain.pipeline import KeptPlan

    return {"job": Job, "sweep": Search, "pipeline": KeptPlan, "owner": Owner}


def advance(run: RunRecord, to: RunState, *, reason: str, at: float, until: str = "") -> RunRecord:
    """Return `run` moved to `to`. Nothing else in this code base changes a run's state."""
    if to is run.state:
        return run  # an agent repeats itself when a reply is lost
    if to not in _NEXT[run.state]:
        raise Conflict(f"Run {run.id} is {run.state.value}; it cannot become {to.value}.")
    return run._replace(state=to, history=(*run.history, Step(at, to.value, reason, until)))


def note(run: RunRecord, reason: str, *, at: float, until: str = "") -> RunRecord:
    """Return `run` with an event that changes no state: why it waits, or how far a stage has come."""
    last = run.history[-1] if run.history else None
    if last is not None and (last.reason, last.until) == (reason, until):
        return run
    if len(run.history) >= limits.STEPS_OF_HISTORY:
        return run
    return run._replace(history=(*run.history, Step(at, run.state.value, reason, until)))


def warned(run: RunRecord, notices: Iterable[str]) -> RunRecord:
    """Return `run` with more that its user should know. What it says already is not said again."""
    return run._replace(warnings=tuple(dict.fromkeys((*run.warnings, *notices))))


def end(run: RunRecord, to: RunState, *, reason: str, at: float, error: Mapping[str, Any] | None = None) -> RunRecord:
    """Return `run` ended as `to`, through the states that lie between. A run that has ended stays as it is."""
    if run.ended:
        return run
    if to is S.COMPLETED:
        for between in (S.PREPARING, S.QUEUED) if run.job is not None else ():
            if between in _NEXT[run.state]:
                run = advance(run, between, reason="", at=at)
        for between in (S.RUNNING, S.FINALIZING):
            if between in _NEXT[run.state]:
                run = advance(run, between, reason="", at=at)
    run = advance(run, to, reason=reason, at=at)
    return run._replace(error=error, cancel_requested=False) if error else run._replace(cancel_requested=False)


def status(run: RunRecord, now: float) -> str:
    """What users see. Two of Azure's statuses are observations, so we compute them and never store them."""
    if run.cancel_requested and not run.ended:
        return "CancelRequested" if run.error is None else S.FAILED.value  # fail() was called: nothing changes that
    if run.state is S.RUNNING and run.last_heard is not None and now - run.last_heard > LATE_SECONDS:
        return "NotResponding"
    return run.state.value


def states_behind(statuses: Iterable[str]) -> tuple[str, ...]:
    """The states of runs that may show as one of these statuses."""
    observed = {"CancelRequested": [each.value for each in S if each not in ENDED], "NotResponding": [S.RUNNING.value]}
    return tuple(sorted({state for each in statuses for state in observed.get(each, [each])}))


def stages(run: RunRecord, now: float) -> list[dict[str, Any]]:
    """Each event with the seconds until the next: where the time went, and what it waits for now."""
    ends = [step.at for step in run.history[1:]] + [run.ended_at or now]
    return [dict(step.to_json(), seconds=round(max(0.0, until - step.at), 3)) for step, until in zip(run.history, ends)]


def set_properties(run: RunRecord, properties: Mapping[str, str]) -> RunRecord:
    return run._replace(properties=with_properties(f"run {run.id}", run.properties, properties))


def with_properties(whose: str, there: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Properties cannot be changed once set; setting the same value again is no change."""
    for key, value in more.items():
        if key in there and there[key] != value:
            raise Conflict(
                f"Property '{key}' of {whose} is already '{there[key]}' and properties cannot be changed once set. Use "
                "a tag for what may change."
            )
    limits.check_count(f"The properties of {whose}", {*there, *more}, limits.LABELS)
    return {**there, **more}


def check_experiment_name(name: Any) -> str:
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise UserErrorException(
            f"Experiment name {name!r} cannot be used. A name is 1 to 255 letters, digits, underscores and dashes, "
            "and begins with a letter or a digit."
        )
    return name


def check_run_id(run_id: Any) -> str:
    if not isinstance(run_id, str) or not ID_PATTERN.fullmatch(run_id):
        raise UserErrorException(
            f"Run id {run_id!r} cannot be used. An id is 1 to 256 letters, digits, underscores and dashes, and "
            "begins with a letter or a digit."
        )
    return run_id


def check_text(what: str, value: Any, most: int = limits.DESCRIPTION) -> str | None:
    return None if value is None else limits.check_text(what, value, most)


def check_labels(what: str, labels: Any, beside: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Tags and properties: text by text; a tag may stand without a value. `beside`: those that are there already."""
    if not isinstance(labels, Mapping):
        raise UserErrorException(f"{what} must be a dictionary of text by text, not {type(labels).__name__}.")
    checked: dict[str, Any] = {}
    for key, value in labels.items():
        if not isinstance(key, str) or not key:
            raise UserErrorException(f"A key of {what} must be text that is not empty, not {key!r}.")
        limits.check_text(f"A key of {what}", key, limits.LABEL_KEY)
        checked[key] = (
            value if value is None else limits.check_text(f"'{key}' of {what}", str(value), limits.LABEL_VALUE)
        )
    if len(beside) + len(checked) > limits.LABELS:
        limits.check_count(what, {*beside, *checked}, limits.LABELS)
    return checked


def label_text(key: str, value: str | None = None) -> str:
    """A label to look for, as it travels: `key` with any value, or `key=value`."""
    return key.replace("%", "%25").replace("=", "%3D") + ("" if value is None else f"={value}")


def parse_label(text: str) -> tuple[str, str | None]:
    """The key and the value (None: any) that a text asks for."""
    key, sign, value = text.partition("=")
    return key.replace("%3D", "=").replace("%25", "%"), value if sign else None


def next_states(run: RunRecord) -> frozenset[RunState]:
    """Where `run` may go from here."""
    return _NEXT[run.state]
