"""When a run of a hyperparameter search is ended early."""

from __future__ import annotations

from typing import Any

from lapis.domain import stopping


class EarlyTerminationPolicy:
    """What all policies have in common."""

    def __init__(self, name: str, properties: Any = None) -> None:
        self._policy = stopping.check_policy(name, dict(properties or {}))

    def to_json(self) -> dict[str, Any]:
        """What is sent with the search."""
        given = {key: value for key, value in self._policy.properties.items() if value is not None}
        return {"name": self._policy.name, "properties": given}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EarlyTerminationPolicy) and other.to_json() == self.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in self.to_json()["properties"].items())
        return f"{type(self).__name__}({given})"


class _Regular(EarlyTerminationPolicy):
    """A policy that looks at a run at regular intervals."""

    @property
    def evaluation_interval(self) -> int:
        return int(self._policy.properties["evaluation_interval"])

    @property
    def delay_evaluation(self) -> int:
        return int(self._policy.properties["delay_evaluation"])


class BanditPolicy(_Regular):
    """Stops a run whose best is not within the slack of the best run's at the same interval."""

    POLICY_NAME = stopping.BANDIT

    def __init__(
        self,
        evaluation_interval: int = 1,
        slack_factor: float | None = None,
        slack_amount: float | None = None,
        delay_evaluation: int = 0,
    ) -> None:
        given = {"slack_factor": slack_factor, "slack_amount": slack_amount}
        intervals = {"evaluation_interval": evaluation_interval, "delay_evaluation": delay_evaluation}
        super().__init__(self.POLICY_NAME, {**intervals, **given})

    @property
    def slack_factor(self) -> float | None:
        return self._policy.properties["slack_factor"]  # type: ignore[no-any-return]

    @property
    def slack_amount(self) -> float | None:
        return self._policy.properties["slack_amount"]  # type: ignore[no-any-return]


class MedianStoppingPolicy(_Regular):
    """Stops a run whose best is worse than the median of all runs' averages at the same interval."""

    POLICY_NAME = stopping.MEDIAN

    def __init__(self, evaluation_interval: int = 1, delay_evaluation: int = 0) -> None:
        intervals = {"evaluation_interval": evaluation_interval, "delay_evaluation": delay_evaluation}
        super().__init__(self.POLICY_NAME, intervals)


class TruncationSelectionPolicy(_Regular):
    """Stops the given share of runs that are the worst at the same interval."""

    POLICY_NAME = stopping.TRUNCATION

    def __init__(
        self,
        truncation_percentage: int,
        evaluation_interval: int = 1,
        delay_evaluation: int = 0,
        exclude_finished_jobs: bool = False,
    ) -> None:
        intervals = {"evaluation_interval": evaluation_interval, "delay_evaluation": delay_evaluation}
        share = {"truncation_percentage": truncation_percentage, "exclude_finished_jobs": bool(exclude_finished_jobs)}
        super().__init__(self.POLICY_NAME, {**intervals, **share})

    @property
    def truncation_percentage(self) -> int:
        return int(self._policy.properties["truncation_percentage"])


class NoTerminationPolicy(EarlyTerminationPolicy):
    """Every run goes on to its end."""

    POLICY_NAME = stopping.NONE

    def __init__(self) -> None:
        super().__init__(self.POLICY_NAME)


class AshaPolicy(EarlyTerminationPolicy):
    """Lapis' own: asynchronous successive halving.

    At interval `first_rung`, and then whenever a run has come `reduction_factor` times as far, only the best one of
    `reduction_factor` goes on.
    """

    POLICY_NAME = stopping.ASHA

    def __init__(self, reduction_factor: float = 3, first_rung: int = 1) -> None:
        super().__init__(self.POLICY_NAME, {"reduction_factor": reduction_factor, "first_rung": first_rung})


def from_json(body: Any) -> EarlyTerminationPolicy:
    """The policy that was sent with a search."""
    cls = next(each for each in _ALL if each.POLICY_NAME == body["name"])
    made: EarlyTerminationPolicy = cls.__new__(cls)
    EarlyTerminationPolicy.__init__(made, body["name"], body["properties"])
    return made


_ALL: tuple[Any, ...] = (
    BanditPolicy, MedianStoppingPolicy, TruncationSelectionPolicy, NoTerminationPolicy, AshaPolicy,
)  # fmt: skip
