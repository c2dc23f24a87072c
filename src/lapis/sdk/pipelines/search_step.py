"""A step that searches for hyperparameters, and its run."""

from __future__ import annotations

import copy
from typing import Any
from uuid import uuid4

from lapis.domain.sweeps import check_spec
from lapis.errors import InvalidPipeline
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.pipelines.bindings import PipelineData
from lapis.sdk.pipelines.step_run import StepRun
from lapis.sdk.pipelines.steps import PipelineStep
from lapis.sdk.runs.run import Run
from lapis.sdk.training.sweep_run import HyperDriveRun


class HyperDriveStep(PipelineStep):
    """Runs a search. `metrics_output` and outputs with a `TrainingOutput` get its metrics and files of its best run."""

    def __init__(
        self,
        name: str,
        hyperdrive_config: Any = None,
        estimator_entry_script_arguments: Any = None,
        inputs: Any = None,
        outputs: Any = None,
        metrics_output: Any = None,
        allow_reuse: bool = True,
        version: str | None = None,
        *,
        hyperdrive_run_config: Any = None,  # as the first releases called it
    ) -> None:
        hyperdrive_config = hyperdrive_config or hyperdrive_run_config
        if not hasattr(hyperdrive_config, "_spec"):
            raise InvalidPipeline(f"HyperDriveStep needs a HyperDriveConfig, not {type(hyperdrive_config).__name__}.")
        self._config, self._allow_reuse = hyperdrive_config, bool(allow_reuse)
        self._version = None if version is None else str(version)
        arguments = estimator_entry_script_arguments
        if arguments is None:
            made = hyperdrive_config._script_config()
            arguments = made.arguments or made.run_config.arguments or []
        metrics = metrics_output if isinstance(metrics_output, (list, tuple)) else [metrics_output]
        given = [*(outputs or []), *(_as_metrics(each) for each in metrics if each is not None)]
        super().__init__(name, inputs, given, arguments)

    def _search(self) -> dict[str, Any]:
        spec: dict[str, Any] = self._config._spec([], seed=uuid4().int % 2**31)
        check_spec(spec)
        return spec

    def _script_config(self, context: Any) -> ScriptRunConfig:
        made = copy.copy(self._config._script_config())
        made.run_config = copy.deepcopy(made.run_config)
        made.run_config.arguments = []
        made.arguments = [context.word(self, each) for each in self._arguments]
        return made  # type: ignore[no-any-return]


def _as_metrics(output: Any) -> Any:
    """An output that says itself what of the search it is; without a word, its metrics."""
    from lapis.sdk.pipelines.bindings import TrainingOutput

    if isinstance(output, PipelineData) and output._binding.training_output is None:
        output._binding._training_output = TrainingOutput("Metrics")
    return output


class HyperDriveStepRun(HyperDriveRun):
    """The search that a HyperDriveStep ran: `HyperDriveStepRun(step_run)`."""

    def __init__(self, step_run: StepRun) -> None:
        found = step_run.reused_run_id or step_run.id
        Run.__init__(self, step_run.experiment, found)
        self._config = None
        if not self._facts().get("sweep"):
            raise InvalidPipeline(f"Step '{step_run.name}' ({step_run.id}) is no hyperparameter search.")
