"""The run as the script inside a job sees it."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, NoReturn

from lapis.client.http_client import Client, job_endpoint
from lapis.client.recording import JobRecorder
from lapis.errors import UserErrorException
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.runs.run import Run
from lapis.sdk.workspace.workspace import Workspace


class InputDatasets(Dict[str, Any]):
    """The inputs of a run by name: a path where it is mounted or downloaded, else the dataset itself."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(json.loads(os.environ.get("LAPIS_INPUTS") or "{}"))
        self.workspace = workspace

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if os.path.isabs(value):
            return value
        from lapis.sdk.data.abstract_dataset import AbstractDataset

        return AbstractDataset.get_by_id(self.workspace, value)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def __missing__(self, key: str) -> NoReturn:
        raise UserErrorException(f"This run has no input named '{key}'. It has: {', '.join(self) or 'none'}.")


class OutputDatasets(Dict[str, str]):
    """The outputs of a run by name: the folder to write each to."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(json.loads(os.environ.get("LAPIS_OUTPUTS") or "{}"))
        self.workspace = workspace

    def __missing__(self, key: str) -> NoReturn:
        raise UserErrorException(f"This run has no output named '{key}'. It has: {', '.join(self) or 'none'}.")


class _SubmittedRun(Run):
    """Made without asking the server anything: a script that only logs never waits for it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **dict(kwargs, _check=False))

    @property
    def input_datasets(self) -> InputDatasets:
        return InputDatasets(self._experiment.workspace)

    @property
    def output_datasets(self) -> OutputDatasets:
        return OutputDatasets(self._experiment.workspace)

    def complete(self, _set_status: bool = True) -> None:
        """Accepted; the agent says how the run ended, from the script's exit status."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        """`with Run.get_context()`: an exception ends the script, and so the run, by itself."""

    def __repr__(self) -> str:
        return f"Run(Experiment: {self._experiment.name},\nId: {self._run_id},\nType: {Run.__name__})"


_context: _SubmittedRun | None = None


def from_environment() -> _SubmittedRun | None:
    """The run that AZUREML_RUN_ID and its kin describe; None outside a job."""
    global _context
    environ = os.environ
    endpoint, folder = job_endpoint(), environ.get("LAPIS_RUN_FOLDER")
    if endpoint is None or not folder:
        return None
    run_id = environ["AZUREML_RUN_ID"]
    if _context is None or _context.id != run_id:
        client = Client(endpoint)
        info: dict[str, Any] = {
            "id": environ["AZUREML_WORKSPACE_ID"],
            "name": environ["AZUREML_ARM_WORKSPACE_NAME"],
            "subscription_id": environ["AZUREML_ARM_SUBSCRIPTION"],
            "resource_group": environ["AZUREML_ARM_RESOURCEGROUP"],
            "location": "local",
            "sku": "basic",
            "tags": {},
        }
        workspace = Workspace._from_info(client, info)
        experiment = Experiment(workspace, environ["AZUREML_ARM_PROJECT_NAME"], _create_in_cloud=False)
        recorder = JobRecorder(folder, client, info["id"], run_id)
        _context = _SubmittedRun(experiment, run_id, _recorder=recorder)
    return _context
