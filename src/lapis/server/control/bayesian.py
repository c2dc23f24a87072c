"""Bayesian sampling by Optuna's tree-structured Parzen estimator: asked for parameters, told how they did.

What it proposes hangs on the seed, the number of the trial and the trials so far, and on nothing else: a server that
starts again proposes the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lapis.domain import spaces
from lapis.domain.sweeps import Sampler, Spec

_FIRST = 10  # trials by chance at most, before there is enough to learn from


class _Open(NamedTuple):
    """What was proposed last, until it is started."""

    at: int
    number: int
    parameters: Mapping[str, Any]


class BayesianSampler(Sampler):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._optuna = _optuna()
        self._seed = spec.sampling.seed
        self._space = spec.sampling.space
        self._by_chance = min(_FIRST, max(3, spec.max_total // 5))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a part of it may change with its next release
            self._study = self._optuna.create_study(direction="maximize")
        self._trials: dict[int, int] = {}  # Optuna's numbers by ours
        self._open: _Open | None = None

    def next(self, index: int) -> Mapping[str, Any] | None:
        if self._size is not None and index >= self._size:
            return None
        if self._open is not None and self._open.at == index:
            return self._open.parameters  # asked for, and not started yet
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._study.sampler = self._optuna.samplers.TPESampler(
                seed=(self._seed * 1_000_003 + index) % 2**32, n_startup_trials=self._by_chance,
                multivariate=True, group=self._is_conditional(), constant_liar=True,
            )  # fmt: skip
            trial = self._study.ask()
        chosen: dict[str, Any] = {}
        for name, expression in self._space.items():
            if spaces.applies(expression, chosen):
                chosen[name] = _value(expression, _suggest(trial, name, self._distribution(expression)))
        self._open = _Open(index, trial.number, chosen)
        return chosen

    def started(self, number: int, parameters: Mapping[str, Any]) -> None:
        asked, self._open = self._open, None
        if asked is not None and asked.parameters == parameters:
            self._trials[number] = asked.number
            return
        inside = {name: self._place(name, value) for name, value in parameters.items() if name in self._space}
        known = {name: place for name, place in inside.items() if place is not None}
        self._study.add_trial(
            self._optuna.trial.create_trial(
                state=self._optuna.trial.TrialState.RUNNING, params=known,
                distributions={name: self._distribution(self._space[name]) for name in known},
            )
        )  # fmt: skip
        self._trials[number] = len(self._study.get_trials(deepcopy=False)) - 1

    def ended(self, number: int, value: float | None) -> None:
        asked = self._trials[number]
        if value is None:
            self._study.tell(asked, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(asked, value)

    def _is_conditional(self) -> bool:
        return any(expression[0] == spaces.WHEN for expression in self._space.values())

    def _distribution(self, expression: Sequence[Any]) -> Any:
        """Numbers to choose from are in order, as a place in their row; other values are apart from each other."""
        distributions = self._optuna.distributions
        kind, arguments = spaces.unconditional(expression)
        if kind == spaces.CHOICE:
            count = len(arguments[0])
            if _in_order(arguments[0]):
                return distributions.IntDistribution(0, count - 1)
            return distributions.CategoricalDistribution(tuple(range(count)))
        if kind == "quniform":
            low, high, q = arguments
            return distributions.IntDistribution(round(low / q), round(high / q))
        return distributions.FloatDistribution(*arguments)

    def _place(self, name: str, value: Any) -> Any:
        """A value as Optuna knows it; None if the space does not have it (an earlier sweep may have had another)."""
        kind, arguments = spaces.unconditional(self._space[name])
        if kind == spaces.CHOICE:
            row = _row(arguments[0])
            return row.index(value) if value in row else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return None
        place = round(value / arguments[2]) if kind == "quniform" else float(value)
        distribution = self._distribution(self._space[name])
        return place if distribution.low <= place <= distribution.high else None


def _optuna() -> Any:
    import optuna  # late: it takes half a second, and only Bayesian searches need it

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _suggest(trial: Any, name: str, distribution: Any) -> Any:
    if hasattr(distribution, "choices"):
        return trial.suggest_categorical(name, distribution.choices)
    suggest = trial.suggest_int if isinstance(distribution.low, int) else trial.suggest_float
    return suggest(name, distribution.low, distribution.high)


def _value(expression: Sequence[Any], place: Any) -> Any:
    kind, arguments = spaces.unconditional(expression)
    if kind == spaces.CHOICE:
        return _row(arguments[0])[place]
    return spaces.rounded(place * arguments[2], arguments[2]) if kind == "quniform" else place


def _row(options: Sequence[Any]) -> Sequence[Any]:
    return sorted(options) if _in_order(options) else options


def _in_order(options: Sequence[Any]) -> bool:
    return len(options) > 1 and all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in options)
