"""HyperDriveConfig: what a hyperparameter search runs, which space it looks through, and what it looks for."""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Any

from lapis.domain.sweeps import BAYESIAN, Spec, check_spec
from lapis.errors import HyperDriveConfigException, NotThereYet
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.training.sampling import HyperParameterSampling
from lapis.sdk.training.stopping_policies import EarlyTerminationPolicy, NoTerminationPolicy

if TYPE_CHECKING:
    from lapis.sdk.config.runconfig import RunConfiguration
    from lapis.sdk.training.estimator import MMLBaseEstimator

MAX_DURATION_MINUTES = 10080
_ENOUGH = 20  # runs for each parameter, for Bayesian sampling to do its best


class PrimaryMetricGoal(enum.Enum):
    """Whether the primary metric is to be as great or as small as can be."""

    MAXIMIZE = "MAXIMIZE"
    MINIMIZE = "MINIMIZE"

    @staticmethod
    def from_str(goal: str) -> PrimaryMetricGoal:
        try:
            return PrimaryMetricGoal[str(goal).upper()]
        except KeyError:
            known = "PrimaryMetricGoal.MAXIMIZE or PrimaryMetricGoal.MINIMIZE"
            raise HyperDriveConfigException(f"primary_metric_goal must be {known}, not {goal!r}.") from None


class HyperDriveConfig:
    """Checked whole when it is made; experiment.submit() takes it."""

    def __init__(
        self,
        hyperparameter_sampling: HyperParameterSampling,
        primary_metric_name: str,
        primary_metric_goal: PrimaryMetricGoal | str,
        max_total_runs: int,
        max_concurrent_runs: int | None = None,
        max_duration_minutes: float = MAX_DURATION_MINUTES,
        policy: EarlyTerminationPolicy | None = None,
        estimator: MMLBaseEstimator | None = None,
        run_config: ScriptRunConfig | None = None,
        resume_from: Any = None,
        resume_child_runs: Any = None,
        pipeline: Any = None,
        debug_flag: Any = None,
        custom_run_id: str | None = None,
    ) -> None:
        if pipeline is not None:
            raise NotThereYet("HyperDriveConfig(pipeline=...)", "Search over a script: give run_config.")
        if not isinstance(hyperparameter_sampling, HyperParameterSampling):
            raise HyperDriveConfigException(
                "hyperparameter_sampling must be a RandomParameterSampling, GridParameterSampling or "
                f"BayesianParameterSampling, not {type(hyperparameter_sampling).__name__}."
            )
        policy = NoTerminationPolicy() if policy is None else policy
        if not isinstance(policy, EarlyTerminationPolicy):
            raise HyperDriveConfigException(f"policy must be an early termination policy, not {policy!r}.")
        if not isinstance(primary_metric_goal, PrimaryMetricGoal):
            primary_metric_goal = PrimaryMetricGoal.from_str(primary_metric_goal)
        self._hyperparameter_sampling = hyperparameter_sampling
        self._policy = policy
        self._primary_metric_name = primary_metric_name
        self._primary_metric_goal = primary_metric_goal
        self._max_total_runs = max_total_runs
        self._max_concurrent_runs = max_concurrent_runs
        self._max_duration_minutes = max_duration_minutes
        self._what = _what_to_run(estimator, run_config)
        self._resume_from = _several("resume_from", resume_from)
        self._resume_child_runs = _several("resume_child_runs", resume_child_runs)
        self._debug_flag = debug_flag
        self._custom_run_id = custom_run_id
        self._warn_if_too_few(check_spec(self._spec([])))

    @property
    def estimator(self) -> MMLBaseEstimator | None:
        return None if isinstance(self._what, ScriptRunConfig) else self._what

    @property
    def run_config(self) -> ScriptRunConfig | RunConfiguration:
        """What each run runs: the ScriptRunConfig, or that which the estimator comes to."""
        return self._what if isinstance(self._what, ScriptRunConfig) else self._what.run_config

    @property
    def pipeline(self) -> None:
        return None

    @property
    def source_directory(self) -> str:
        """The folder that is sent."""
        return str(self._what.source_directory)

    def _script_config(self) -> ScriptRunConfig:
        return self._what if isinstance(self._what, ScriptRunConfig) else self._what._script_run_config({})

    def _spec(self, resumed: list[dict[str, Any]], seed: int = 0) -> dict[str, Any]:
        """As the server gets it; without a seed of its own, that of this search."""
        sampling = self._hyperparameter_sampling.to_json()
        own = sampling.pop("properties", {})
        return {
            "sampling": {"seed": seed, **sampling, **own},
            "policy": self._policy.to_json(),
            "metric": self._primary_metric_name,
            "goal": self._primary_metric_goal.value.lower(),
            "max_total": self._max_total_runs,
            "max_concurrent": self._max_concurrent_runs,
            "max_minutes": self._max_duration_minutes,
            "resume_from": [run.id for run in self._resume_from],
            "resume_child_runs": resumed,
        }

    def _warn_if_too_few(self, spec: Spec) -> None:
        needed = _ENOUGH * len(spec.sampling.space)
        if spec.sampling.name == BAYESIAN and spec.max_total < needed:
            logging.getLogger("azureml.train.hyperdrive").warning(
                "Bayesian sampling does its best with %d runs for each parameter, which is max_total_runs=%d here; "
                "%d were asked for.", _ENOUGH, needed, spec.max_total,
            )  # fmt: skip


class HyperDriveRunConfig(HyperDriveConfig):
    """The older name of HyperDriveConfig."""


def _what_to_run(estimator: Any, run_config: Any) -> MMLBaseEstimator | ScriptRunConfig:
    if (estimator is None) == (run_config is None):
        raise HyperDriveConfigException(
            "HyperDriveConfig needs run_config (a ScriptRunConfig) or estimator: one of both."
        )
    if estimator is not None and not hasattr(estimator, "_script_run_config"):
        raise HyperDriveConfigException(f"estimator must be an estimator, not {type(estimator).__name__}.")
    what: MMLBaseEstimator | ScriptRunConfig = run_config if estimator is None else estimator
    if not hasattr(what, "source_directory"):
        raise HyperDriveConfigException(f"run_config must be a ScriptRunConfig, not {type(run_config).__name__}.")
    return what


def _several(what: str, given: Any) -> list[Any]:

    runs = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
    for run in runs:
        if not hasattr(run, "experiment"):
            raise HyperDriveConfigException(f"{what} takes runs, not {type(run).__name__} ({run!r}).")
    return runs
