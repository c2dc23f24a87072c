"""The run of one step of a pipeline, and what it wrote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from lapis.domain.log_names import STD_LOG
from lapis.domain.pipeline_moves import REUSED_RUN
from lapis.domain.run import STEP_RUN
from lapis.errors import NotFound
from lapis.sdk.pipelines.bindings import InputPortBinding
from lapis.sdk.runs.run import Run

if TYPE_CHECKING:
    from lapis.sdk.data.abstract_datastore import AbstractDatastore
    from lapis.sdk.runs.experiment import Experiment
    from lapis.sdk.workspace.workspace import Workspace

IN_PIPELINES = {"Completed": "Finished"}  # the word that SDK v1's pipelines have for it


class StepRun(Run):
    RUN_TYPE = STEP_RUN

    def __init__(
        self, experiment: Experiment, step_run_id: str, pipeline_run_id: str | None = None, node_id: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(experiment, step_run_id, **{key: value for key, value in kwargs.items() if key == "_view"})

    @property
    def pipeline_run_id(self) -> str:
        return str(self._facts()["parent_id"])

    @property
    def _node_id(self) -> str | None:
        return self._property("azureml.nodeid")

    @property
    def reused_run_id(self) -> str | None:
        """The run whose outputs were used again, where the step did not have to run."""
        return self._property(REUSED_RUN)

    def _property(self, name: str) -> str | None:
        found = self._facts()["properties"].get(name)
        return None if found is None else str(found)

    # -- what it wrote

    def get_outputs(self) -> dict[str, StepRunOutput]:
        """What it writes, by name."""
        workspace = self._experiment.workspace
        return {
            place["name"]: StepRunOutput(workspace, self.pipeline_run_id, self, place["name"], place)
            for place in self._row()["outputs"]
        }

    def get_output(self, name: str) -> StepRunOutput:
        found = self.get_outputs()
        if name not in found:
            raise NotFound(f"Step '{self.name}' has no output '{name}'. Known: {', '.join(found) or 'none'}.")
        return found[name]

    def get_output_data(self, name: str) -> PortDataReference:
        """Where an output lies; download() brings it here."""
        return self.get_output(name).get_port_data_reference()

    def _row(self) -> dict[str, Any]:
        path = f"{self._experiment.workspace._base}/runs/{self.pipeline_run_id}/steps"
        rows = self._client.call("GET", path)["steps"]
        return dict(next(row for row in rows if row["run_id"] == self.id))

    # -- how it does

    def get_status(self) -> str:
        """Queued, Running, ..., Finished, Failed or Canceled, in SDK v1's words for pipelines."""
        status = super().get_status()
        return IN_PIPELINES.get(status, status)

    @property
    def status(self) -> str:
        """As any run's: Completed, where get_status() says Finished."""
        return super().get_status()

    def get_metrics(
        self, name: str | None = None, recursive: bool = False, run_type: Any = None, populate: bool = False
    ) -> dict[str, Any]:
        """The metrics that it logged; of a step that was reused, those of the run that was."""
        earlier = self.reused_run_id
        if earlier is not None:
            return Run.get(self._experiment.workspace, earlier).get_metrics(name, recursive, run_type, populate)
        return super().get_metrics(name, recursive, run_type, populate)

    def get_job_log(self) -> str:
        """What the script printed."""
        return self.get_stdout_log()

    def get_stdout_log(self) -> str:
        return self._text_of(STD_LOG) if STD_LOG in self.get_file_names() else ""

    def get_stderr_log(self) -> str:
        """The same: a script's two streams are one log here, in the order of what was written."""
        return self.get_stdout_log()

    def wait_for_completion(  # type: ignore[override]
        self, show_output: bool = True, timeout_seconds: float = sys.maxsize, raise_on_error: bool = True
    ) -> str:
        """Wait until it has ended. Gives Finished, Failed or Canceled."""
        from lapis.sdk.pipelines.waiting import wait_for_step

        return wait_for_step(self, show_output, timeout_seconds, raise_on_error)


class StepRunOutput:
    """An output of a step's run."""

    def __init__(self, context: Any, pipeline_run_id: str, step_run: StepRun, name: str, step_output: Any) -> None:
        self.context, self.pipeline_run_id, self.step_run = context, pipeline_run_id, step_run
        self.name, self.step_output = name, step_output

    def get_port_data_reference(self) -> PortDataReference:
        return PortDataReference._of(self.context, self.pipeline_run_id, self.step_output, self.step_run)

    def __repr__(self) -> str:
        return f"StepRunOutput({self.name!r} of {self.step_run.id})"


class PortDataReference:
    """Where an output of a step lies. It can be an input of a step of another pipeline, too."""

    def __init__(self, context: Any, pipeline_run_id: str, data_reference: Any, step_run: Any = None) -> None:
        self._workspace: Workspace = context
        self.pipeline_run_id, self._reference, self._step_run = pipeline_run_id, data_reference, step_run
        self.data_reference_name = data_reference.data_reference_name

    @classmethod
    def _of(cls, workspace: Workspace, run_id: str, place: Any, step_run: Any = None) -> PortDataReference:
        from lapis.sdk.data.data_reference import DataReference
        from lapis.sdk.data.datastore import Datastore

        store = Datastore.get(workspace, place["datastore"])
        return cls(workspace, run_id, DataReference(store, place["name"], place["path"]), step_run)

    @property
    def name(self) -> str:
        return str(self.data_reference_name)

    @property
    def datastore(self) -> AbstractDatastore:
        found: AbstractDatastore = self._reference.datastore
        return found

    @property
    def datastore_name(self) -> str:
        return self.datastore.name

    @property
    def path_on_datastore(self) -> str:
        return str(self._reference.path_on_datastore)

    @property
    def _path_on_datastore(self) -> str:
        return self.path_on_datastore

    def download(self, local_path: str, overwrite: bool | None = None, show_progress: bool | None = None) -> int:
        """Copy it to `local_path` and its path on the datastore; how many files that were."""
        store: Any = self.datastore
        count: int = store.download(
            local_path, prefix=self.path_on_datastore, overwrite=bool(overwrite), show_progress=bool(show_progress)
        )
        return count

    def as_input(self, input_name: str) -> InputPortBinding:
        return self.create_input_binding(input_name)

    def as_mount(self, input_name: str | None = None) -> InputPortBinding:
        return self.create_input_binding(input_name, "mount")

    def as_download(
        self, input_name: str | None = None, path_on_compute: str | None = None, overwrite: bool | None = None
    ) -> InputPortBinding:
        return self.create_input_binding(input_name, "download", path_on_compute, overwrite)

    def create_input_binding(
        self,
        input_name: str | None = None,
        mode: str | None = None,
        path_on_compute: str | None = None,
        overwrite: bool | None = None,
    ) -> InputPortBinding:
        return InputPortBinding(input_name or self.name, self._reference, mode or "mount", path_on_compute, overwrite)

    def __repr__(self) -> str:
        return f"PortDataReference({self.datastore_name}/{self.path_on_datastore})"
