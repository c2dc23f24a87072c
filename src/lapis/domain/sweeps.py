"""What a hyperparameter search does next: a pure function of what was asked for and of its trials so far.

`decide()` says it from scratch. `Board` says the same at a cost that does not grow with the number of trials: it is
told what is new and keeps what the next decision needs. A server that starts again tells a new board everything.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from lapis.domain import limits, spaces
from lapis.domain.run import RunState
from lapis.domain.stopping import NONE, Policy, Ranking, check_policy, looks_at
from lapis.domain.sweep_shape import SpecShape
from lapis.errors import HyperDriveConfigException, HyperDriveScenarioNotSupportedException

RANDOM, GRID, BAYESIAN = "RANDOM", "GRID", "BayesianOptimization"
SAMPLINGS = (RANDOM, GRID, BAYESIAN)
GOALS = ("maximize", "minimize")
LOG = "azureml-logs/hyperdrive.txt"
HYPERPARAMETERS = "hyperparameters"  # the tag of a child that holds them, as JSON
STOPPED_BY = "lapis.stopped_by"  # the property of a child that was stopped early: which rule, and which numbers
MOST_EARLIER = 5  # sweeps to start warm from
FIRST_FAILURES = 3  # when the first so many trials have all failed, the rest would too
COMPLETED, FAILED, CANCELED = (state.value for state in (RunState.COMPLETED, RunState.FAILED, RunState.CANCELED))


class Sampling(NamedTuple):
    name: str
    space: Mapping[str, Sequence[Any]]
    seed: int

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "parameter_space": dict(self.space), "seed": self.seed}


class Spec(NamedTuple):
    sampling: Sampling
    policy: Policy
    metric: str
    goal: str
    max_total: int
    max_concurrent: int
    max_minutes: float
    resume_from: tuple[str, ...] = ()  # earlier sweeps, whose trials count as known
    resume_child_runs: tuple[Mapping[str, Any], ...] = ()  # run_id and parameters of runs to go on with

    @property
    def sign(self) -> int:
        return 1 if self.goal == "maximize" else -1

    def to_json(self) -> dict[str, Any]:
        return dict(self._asdict(), sampling=self.sampling.to_json(), policy=self.policy.to_json())


class Trial(NamedTuple):
    """One run of a sweep, as far as it is known. `state` is None while it has not ended."""

    number: int
    parameters: Mapping[str, Any]
    values: Sequence[float] = ()  # of the primary metric, as reported
    state: str | None = None
    asked_to_stop: bool = False
    resumes: str | None = None  # the run it goes on with


class Start(NamedTuple):
    number: int
    parameters: Mapping[str, Any]
    resumes: str | None = None


class Stop(NamedTuple):
    number: int
    reason: str
    early: bool  # by the policy: the run itself is at fault


class End(NamedTuple):
    state: str
    reason: str
    code: str | None = None  # of the error, if it failed


class Decision(NamedTuple):
    start: list[Start]
    stop: list[Stop]
    end: End | None = None


def check_spec(body: Mapping[str, Any]) -> Spec:
    """What was asked for, checked whole."""
    SpecShape.checked(body, "search")
    sampling = check_sampling(body["sampling"])
    policy = check_policy(body["policy"]["name"], body["policy"]["properties"])
    if sampling.name == BAYESIAN and policy.name != NONE:
        raise HyperDriveScenarioNotSupportedException(
            f"Bayesian sampling learns from whole runs, so it goes without early termination: not {policy.name}. "
            "Leave policy out, or use RandomParameterSampling."
        )
    if body["goal"] not in GOALS:
        raise HyperDriveConfigException(f"primary_metric_goal is one of {', '.join(GOALS)}, not {body['goal']!r}.")
    if not isinstance(body["metric"], str) or not body["metric"].strip() or len(body["metric"]) > limits.NAME:
        raise HyperDriveConfigException(
            "primary_metric_name must be the name of a metric that the script logs, not "
            f"{limits.shown(body['metric'])}."
        )
    total, concurrent = body["max_total"], body.get("max_concurrent")
    _check_count("max_total_runs", total)
    if concurrent is not None:
        _check_count("max_concurrent_runs", concurrent)
        if concurrent > total:
            raise HyperDriveConfigException(
                f"max_concurrent_runs={concurrent} is more than max_total_runs={total}: so many never run at once."
            )
    minutes = body["max_minutes"]
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not 0 < minutes <= limits.SECONDS / 60:
        most = limits.SECONDS // 60
        raise HyperDriveConfigException(
            f"max_duration_minutes must be a number above 0 and at most {most}, not {limits.shown(minutes)}."
        )
    earlier, children = tuple(body.get("resume_from") or ()), tuple(body.get("resume_child_runs") or ())
    if len(earlier) > MOST_EARLIER:
        raise HyperDriveConfigException(f"resume_from takes {MOST_EARLIER} sweeps at most, not {len(earlier)}.")
    if len(children) > total:
        raise HyperDriveConfigException(
            f"resume_child_runs names {len(children)} runs, which is more than max_total_runs={total}."
        )
    return Spec(sampling, policy, body["metric"], body["goal"], total, concurrent or total, minutes, earlier, children)


class Sampler:
    """Gives the parameters of one trial after another. Random and grid sampling hang on nothing but the number."""

    def __init__(self, spec: Spec) -> None:
        self._sampling = spec.sampling
        self._size = spaces.size(spec.sampling.space)
        self._order: Sequence[int] | None = None
        if self._size is not None:
            everything = range(self._size)
            if spec.sampling.name == RANDOM:  # each once: the search ends when the space does
                few = min(self._size, spec.max_total)
                self._order = Random(spec.sampling.seed).sample(everything, few)
            else:
                self._order = everything

    def next(self, index: int) -> Mapping[str, Any] | None:
        """The parameters of that trial of the sampling; None if the space has no more."""
        if self._order is None:
            return spaces.draw(self._sampling.space, Random(f"{self._sampling.seed}/{index}"))
        return spaces.point(self._sampling.space, self._order[index]) if index < len(self._order) else None

    def started(self, number: int, parameters: Mapping[str, Any]) -> None:
        """A trial runs, here or in an earlier sweep."""

    def ended(self, number: int, value: float | None) -> None:
        """A trial has ended, with its best value; greater is better."""


class Board:
    """Told what is new; says what to do."""

    def __init__(self, spec: Spec, sampler: Sampler) -> None:
        self.spec = spec
        self.best: tuple[int, float] | None = None  # which trial, and its value as logged
        self.started_count = 0
        self.ended_counts = {COMPLETED: 0, FAILED: 0, CANCELED: 0}
        self._sampler = sampler
        self._sampled = 0
        self._live: dict[int, _Progress] = {}
        self._rankings: dict[int, Ranking] = {}
        self._at: dict[int, set[int]] = {}  # live trials by the last interval that the policy looks at
        self._common = 0  # the last interval that at least two trials have reached
        self._touched: set[int] = set()  # intervals where something changed since the last decision
        self._first_failed = 0  # how many of the first trials have
        self._exhausted = False
        self._earlier: set[int] = set()

    @property
    def live(self) -> list[int]:
        return list(self._live)

    def knew(self, trial: Trial) -> None:
        """A trial of an earlier sweep: known, and not one of ours. Its number is negative."""
        self._earlier.add(trial.number)
        self._live[trial.number] = _Progress()
        self._sampler.started(trial.number, trial.parameters)
        self.logged(trial.number, trial.values)
        self.ended(trial.number, trial.state or CANCELED)

    def started(self, start: Start) -> None:
        self.started_count += 1
        self._sampled += start.resumes is None
        self._live[start.number] = _Progress()
        self._sampler.started(start.number, start.parameters)

    def logged(self, number: int, values: Iterable[float]) -> None:
        """Further values of the primary metric."""
        progress = self._live.get(number)
        if progress is None:
            return  # said after its end: nothing hangs on it any more
        for value in values:
            finite = math.isfinite(value)
            progress.add(self.spec.sign * value if finite else -math.inf)
            if finite and number >= 0 and (self.best is None or self.spec.sign * (value - self.best[1]) > 0):
                self.best = number, value
            if looks_at(self.spec.policy, progress.count):
                self._rank(number, progress)

    def asked_to_stop(self, number: int) -> None:
        if number in self._live:
            self._live[number].asked_to_stop = True

    def ended(self, number: int, state: str) -> None:
        progress = self._live.pop(number, None)
        if progress is None:
            return
        self._leave(number, progress)
        # where only live runs are compared, the end of one changes the standing of all
        self._touched.update(self._at if self.spec.policy.properties.get("exclude_finished_jobs") else ())
        self._sampler.ended(number, progress.best if progress.best > -math.inf else None)
        if number not in self._earlier:
            self.ended_counts[state] += 1
            self._first_failed += state == FAILED and number < FIRST_FAILURES

    def decide(self, elapsed: float, cancel: bool) -> Decision:
        """What to do now, `elapsed` seconds after the sweep began; `cancel` if somebody asked for that."""
        over = self._reason_to_end(elapsed, cancel)
        if over is not None:
            rest = [number for number, each in self._live.items() if not each.asked_to_stop]
            return Decision(
                [], [Stop(number, over.reason, early=False) for number in rest], None if self._live else over
            )
        stop, start = self._too_bad(), self._to_start()
        if self._live or start:
            return Decision(start, stop)
        return Decision([], [], self._natural_end())

    def seconds_left(self, elapsed: float) -> float:
        return max(0.0, self.spec.max_minutes * 60 - elapsed)

    def _reason_to_end(self, elapsed: float, cancel: bool) -> End | None:
        if cancel:
            return End(CANCELED, "The sweep was cancelled")
        if elapsed >= self.spec.max_minutes * 60:
            return End(CANCELED, f"The sweep ran longer than max_duration_minutes={self.spec.max_minutes:g}")
        if self._first_failed == FIRST_FAILURES and not self.ended_counts[COMPLETED]:
            said = f"The first {FIRST_FAILURES} runs have all failed, so the rest was not tried"
            return End(FAILED, said, "FirstRunsFailed")
        return None

    def _natural_end(self) -> End:
        counts = self.ended_counts
        if self.started_count and counts[FAILED] == self.started_count:
            return End(FAILED, f"All {self.started_count} runs have failed", "AllRunsFailed")
        said = ", ".join(f"{count} {state.lower()}" for state, count in counts.items() if count)
        return End(COMPLETED, f"All {self.started_count} runs have ended: {said}")

    def _too_bad(self) -> list[Stop]:
        """Live trials that the policy does not let go on, of those whose standing may have changed."""
        changed = {number for interval in self._touched for number in self._at.get(interval, ())}
        if self._common in self._touched:  # whoever is ahead of all others is compared there
            changed.update(*(there for interval, there in self._at.items() if interval > self._common))
        self._touched.clear()
        found = []
        for number in sorted(changed):
            progress = self._live[number]
            interval = min(progress.looked_at, self._common)
            if progress.asked_to_stop or not interval:
                continue
            ranking = self._rankings[interval]
            why = ranking.verdict(number, progress.best, self.live, self.spec.sign)
            if why is not None:
                rule = f"Stopped early by the {self.spec.policy.name} policy at interval {interval}"
                found.append(Stop(number, f"{rule}: {self.spec.metric} {why}", early=True))
        return found

    def _to_start(self) -> list[Start]:
        found: list[Start] = []
        children = self.spec.resume_child_runs
        while not self._exhausted and len(self._live) + len(found) < self.spec.max_concurrent:
            number = self.started_count + len(found)
            if number >= self.spec.max_total:
                break
            if number < len(children):
                found.append(Start(number, children[number]["parameters"], children[number]["run_id"]))
                continue
            parameters = self._sampler.next(number - len(children))
            if parameters is None:
                self._exhausted = True
                break
            found.append(Start(number, parameters))
            if self.spec.sampling.name == BAYESIAN:  # the next one is chosen with this one in mind: one at a time
                break
        return found

    def _rank(self, number: int, progress: _Progress) -> None:
        self._leave(number, progress)
        interval = progress.looked_at = progress.count
        ranking = self._rankings.get(interval)
        if ranking is None:
            ranking = self._rankings[interval] = Ranking(self.spec.policy)
        ranking.add(number, progress.best, progress.total / interval)
        if len(ranking) > 1:
            self._common = max(self._common, interval)
        self._touched.add(interval)
        self._at.setdefault(interval, set()).add(number)

    def _leave(self, number: int, progress: _Progress) -> None:
        there = self._at.get(progress.looked_at, set())
        there.discard(number)
        if not there:
            self._at.pop(progress.looked_at, None)


class _Progress:
    """How far a live trial has come."""

    __slots__ = ("asked_to_stop", "best", "count", "looked_at", "total")

    def __init__(self) -> None:
        self.count = 0
        self.best = -math.inf
        self.total = 0.0
        self.looked_at = 0  # the last interval that the policy looks at
        self.asked_to_stop = False

    def add(self, value: float) -> None:
        self.count += 1
        self.best = max(self.best, value)
        self.total += value


def decide(
    spec: Spec, sampler: Sampler, trials: Sequence[Trial], elapsed: float, cancel: bool = False,
    earlier: Sequence[Trial] = (),
) -> Decision:  # fmt: skip
    """What to do now, from all that is known."""
    return board_of(spec, sampler, trials, earlier).decide(elapsed, cancel)


def board_of(spec: Spec, sampler: Sampler, trials: Iterable[Trial], earlier: Iterable[Trial] = ()) -> Board:
    board = Board(spec, sampler)
    for trial in earlier:
        board.knew(trial)
    for trial in trials:
        board.started(Start(trial.number, trial.parameters, trial.resumes))
        board.logged(trial.number, trial.values)
        if trial.asked_to_stop:
            board.asked_to_stop(trial.number)
        if trial.state is not None:
            board.ended(trial.number, trial.state)
    return board


def check_sampling(body: Mapping[str, Any]) -> Sampling:
    name, space = body["name"], spaces.check_space(body["parameter_space"])
    if name not in SAMPLINGS:
        raise HyperDriveConfigException(f"There is no sampling {name!r}. Known: {', '.join(SAMPLINGS)}.")
    for parameter, kind in spaces.kinds(space).items():
        if name == GRID and kind != spaces.CHOICE:
            raise HyperDriveConfigException(
                f"Grid sampling tries all values, and '{parameter}' = {kind}(...) is no list of them: use choice() for "
                "every parameter, or RandomParameterSampling."
            )
        if name == BAYESIAN and kind not in spaces.BAYESIAN:
            raise HyperDriveConfigException(
                f"Bayesian sampling takes {', '.join(spaces.BAYESIAN)}, not '{parameter}' = {kind}(...)."
            )
    if name == GRID and spaces.size(space) is None:
        raise HyperDriveConfigException(
            f"Grid sampling tries all values, and this space has more than {limits.WHOLE}. Use RandomParameterSampling."
        )
    return Sampling(name, space, _checked_seed(body.get("seed")))


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= limits.WHOLE:
        raise HyperDriveConfigException(f"A seed is a whole number from 0 to {limits.WHOLE}, not {limits.shown(seed)}.")
    return seed


def _check_count(what: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limits.TRIALS:
        raise HyperDriveConfigException(
            f"{what} must be a whole number from 1 to {limits.TRIALS}, not {limits.shown(value)}."
        )
