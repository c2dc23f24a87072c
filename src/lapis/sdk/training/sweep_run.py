"""The run of a hyperparameter search: the parent of all its runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lapis.domain.run import ENDED, SWEEP
from lapis.domain.sweeps import LOG
from lapis.errors import HyperDriveRehydrateException, HyperDriveScenarioNotSupportedException
from lapis.sdk.runs.run import Run

if TYPE_CHECKING:
    from lapis.sdk.runs.experiment import Experiment
    from lapis.sdk.training.stopping_policies import EarlyTerminationPolicy
    from lapis.sdk.training.sweep_config import HyperDriveConfig


class HyperDriveRun(Run):
    RUN_TYPE = SWEEP
    HYPER_DRIVE_RUN_USER_AGENT = "sdk_run_hyper_drive"
    _own_log = LOG

    def __init__(
        self, experiment: Experiment, run_id: str, hyperdrive_config: HyperDriveConfig | None = None, **kwargs: Any
    ) -> None:
        self._config = kwargs.pop("hyperdrive_run_config", None) or hyperdrive_config
        super().__init__(experiment, run_id, **kwargs)
        if self._facts().get("type") != SWEEP:
            raise HyperDriveRehydrateException(
                f"Run {run_id} is no hyperparameter search (its type is {self._facts().get('type')!r}): "
                "Run.get(workspace, run_id) gives it as what it is."
            )

    @property
    def hyperdrive_config(self) -> HyperDriveConfig | dict[str, Any]:
        """What was asked for: the HyperDriveConfig if it was made in this process, else a dictionary of the same."""
        return self._config if self._config is not None else dict(self._facts()["sweep"])

    @property
    def hyperdrive_run_config(self) -> HyperDriveConfig | dict[str, Any]:
        """The older name of hyperdrive_config."""
        return self.hyperdrive_config

    def get_termination_policy(self) -> EarlyTerminationPolicy:
        """The policy that ends runs early."""
        from lapis.sdk.training.stopping_policies import from_json

        return from_json(self._facts()["sweep"]["policy"])

    def get_hyperparameters(self) -> dict[str, str]:
        """The hyperparameters of every run by its id, as JSON."""
        return {trial["run_id"]: json.dumps(trial["parameters"]) for trial in self._trials()["trials"]}

    def get_metrics(
        self, name: str | None = None, recursive: bool = False, run_type: Any = None, populate: bool = False
    ) -> dict[str, Any]:
        """The metrics of every run by its id, all in one request."""
        found = super().get_metrics(name, True, run_type, populate)
        return {run_id: metrics for run_id, metrics in found.items() if run_id != self._run_id}

    def get_best_run_by_primary_metric(
        self, include_failed: bool = True, include_canceled: bool = True, include_resume_from_runs: bool = True
    ) -> Run | None:
        """The run whose best value of the primary metric is the best of all; None if no run has logged it."""
        found = self._trials()
        trials = [*found["trials"], *(found["earlier"] if include_resume_from_runs else [])]
        left_out = {*([] if include_failed else ["Failed"]), *([] if include_canceled else ["Canceled"])}
        known = [trial for trial in trials if trial["best"] is not None and trial["status"] not in left_out]
        if not known:
            return None
        best = (max if self._maximizes() else min)(known, key=lambda trial: trial["best"])
        return Run.get(self._experiment.workspace, best["run_id"])

    def get_children_sorted_by_primary_metric(
        self, top: int = 0, reverse: bool = False, discard_no_metric: bool = False
    ) -> list[dict[str, Any]]:
        """The best run first, each with its hyperparameters, best value and status; those without the metric last."""
        trials = self._trials()["trials"]
        known = [trial for trial in trials if trial["best"] is not None]
        known.sort(key=lambda trial: trial["best"], reverse=self._maximizes())
        if reverse:
            known.reverse()
        rest = [] if discard_no_metric else [trial for trial in trials if trial["best"] is None]
        rows = [
            {
                "run_id": trial["run_id"],
                "hyperparameters": json.dumps(trial["parameters"]),
                "best_primary_metric": trial["best"],
                "status": trial["status"],
            }
            for trial in (*known, *rest)
        ]
        return rows[:top] if top else rows

    def get_diagnostics(self) -> dict[str, Any]:
        """What helps to see why a search did as it did: its status, its log, and why runs failed or were stopped."""
        details = self.get_detailed_status()
        trials = self._trials()["trials"]
        return {
            "runId": self._run_id,
            "status": details["status"],
            "reason": details["details"][0]["message"],
            "log": self._text_of(LOG),
            "failed": {trial["run_id"]: trial["reason"] for trial in trials if trial["status"] == "Failed"},
            "stopped": {trial["run_id"]: trial["stopped_by"] for trial in trials if trial["stopped_by"]},
        }

    def cancel(self) -> bool:  # type: ignore[override]
        """Stop the search and all its runs. True if that was still to be done."""
        before = self.get_status()
        super().cancel()
        return before not in ENDED

    def fail(self, error_details: Any = None, error_code: Any = None, _set_status: bool = True) -> None:
        """Not for a search: it says itself how it ended."""
        raise HyperDriveScenarioNotSupportedException(
            f"A hyperparameter search cannot be said to have failed. cancel() stops {self._run_id}."
        )

    def _maximizes(self) -> bool:
        return bool(self._facts()["sweep"]["goal"] == "maximize")

    def _trials(self) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", "/trials")
        return found
