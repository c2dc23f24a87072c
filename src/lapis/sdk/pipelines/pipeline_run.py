"""The run of a pipeline: the parent of the runs of its steps."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Iterator, NoReturn

from lapis.domain.pipeline_moves import LOG
from lapis.domain.run import PIPELINE_RUN, STEP_RUN
from lapis.errors import NotFound, NotThereYet, UserErrorException
from lapis.sdk.pipelines.step_run import IN_PIPELINES, PortDataReference, StepRun
from lapis.sdk.runs.run import Run

if TYPE_CHECKING:
    from lapis.sdk.pipelines.graph import Graph
    from lapis.sdk.runs.experiment import Experiment
    from lapis.sdk.workspace.workspace import Workspace


class PipelineRun(Run):
    RUN_TYPE = PIPELINE_RUN
    _own_log = LOG

    def __init__(self, experiment: Experiment, run_id: str, **kwags: Any) -> None:
        super().__init__(experiment, run_id, **{key: value for key, value in kwags.items() if key == "_view"})
        if self._facts().get("type") != PIPELINE_RUN:
            raise UserErrorException(
                f"Run {run_id} is no pipeline (its type is {self._facts().get('type')!r}): Run.get(workspace, run_id) "
                "gives it as what it is."
            )

    # -- its steps

    def get_steps(self) -> Iterator[StepRun]:
        """The runs of the steps that have started or were reused, in the pipeline's order."""
        runs = {run.id: run for run in self.get_children(type=STEP_RUN) if isinstance(run, StepRun)}
        return iter([runs[row["run_id"]] for row in self._steps()["steps"] if row["run_id"] in runs])

    def find_step_run(self, name: str) -> list[StepRun]:
        """The runs of the steps with that name; an empty list if none has started yet."""
        names = [row["name"] for row in self._steps()["steps"]]
        if name not in names:
            raise NotFound(f"Pipeline run {self.id} has no step '{name}'. Its steps: {', '.join(names)}.")
        return [step for step in self.get_steps() if step.name == name]

    def get_pipeline_output(self, pipeline_output_name: str) -> PortDataReference:
        """An output that a step was given with `pipeline_output_name`; download() brings it here."""
        found = self._steps()
        if pipeline_output_name not in found["outputs"]:
            known = ", ".join(found["outputs"]) or "none: give PipelineData a pipeline_output_name"
            raise NotFound(f"Pipeline run {self.id} has no output '{pipeline_output_name}'. Known: {known}.")
        wanted = found["outputs"][pipeline_output_name]
        row = found["steps"][wanted["step"]]
        (place,) = [each for each in row["outputs"] if each["name"] == wanted["output"]]
        return PortDataReference._of(self._experiment.workspace, self.id, place)

    def get_graph(self) -> Graph:
        """The pipeline as nodes and edges."""
        from lapis.sdk.pipelines.graph import graph_of_run

        return graph_of_run(self)

    @staticmethod
    def get_pipeline_runs(workspace: Workspace, pipeline_id: str) -> list[PipelineRun]:
        raise NotThereYet(
            "PipelineRun.get_pipeline_runs", "experiment.get_runs(type='azureml.PipelineRun') lists them."
        )

    @staticmethod
    def get(workspace: Workspace, run_id: str) -> PipelineRun:
        found = Run.get(workspace, run_id)
        if not isinstance(found, PipelineRun):
            raise UserErrorException(f"Run {run_id} is no pipeline (its type is {found.type!r}).")
        return found

    # -- how it does

    def get_status(self) -> str:
        """NotStarted, Running, CancelRequested, Finished, Failed or Canceled, in SDK v1's words for pipelines."""
        status = super().get_status()
        return IN_PIPELINES.get(status, status)

    @property
    def status(self) -> str:
        """As any run's: Completed, where get_status() says Finished."""
        return super().get_status()

    def wait_for_completion(  # type: ignore[override]
        self, show_output: bool = True, timeout_seconds: float = sys.maxsize, raise_on_error: bool = True
    ) -> str:
        """Wait until it has ended. With `show_output` each step's log is shown. Gives Finished, Failed or Canceled."""
        from lapis.sdk.pipelines.waiting import wait_for_pipeline

        return wait_for_pipeline(self, show_output, timeout_seconds, raise_on_error)

    def cancel(self) -> None:
        """Stop it, and all steps that run."""
        super().cancel()

    def fail(self, error_details: Any = None, error_code: Any = None, _set_status: bool = True) -> None:
        """Not for a pipeline: it says itself how it ended."""
        raise UserErrorException(f"A pipeline cannot be said to have failed. cancel() stops {self._run_id}.")

    def publish_pipeline(
        self, name: str, description: str, version: str, continue_on_step_failure: bool | None = None, **kwargs: Any
    ) -> NoReturn:
        raise NotThereYet("PipelineRun.publish_pipeline")

    def save(self, path: str | None = None) -> NoReturn:
        raise NotThereYet("PipelineRun.save")

    def _steps(self) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", "/steps")
        return found
