"""The run of a submitted script."""

from __future__ import annotations

from typing import Any

from lapis.domain.run import SCRIPT_RUN
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.runs.run import Run


class ScriptRun(Run):
    RUN_TYPE = SCRIPT_RUN

    def __init__(self, experiment: Experiment, run_id: str, directory: Any = None, **kwargs: Any) -> None:
        super().__init__(experiment, run_id, **{k: v for k, v in kwargs.items() if k != "_run_config"})
        self._directory = directory

    def cancel(self) -> None:
        """Stop the script and every process it started, in whatever state the run is."""
        super().cancel()
