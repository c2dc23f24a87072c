"""A run: a handle on what the server knows about it, and on what this process logs to it."""

from __future__ import annotations

import builtins
import os

from lapis.domain import run as rules
from lapis.domain.log_names import STD_LOG
from lapis.errors import (
    AzureMLException,
    RunEnvironmentException,
    ServiceException,
    UserErrorException,
)
from lapis.later import TYPE_CHECKING
from lapis.sdk.base import display
from lapis.sdk.runs import experiment as experiments
from lapis.sdk.runs.run_family import RunFamily
from lapis.sdk.runs.run_files import RunFiles
from lapis.sdk.runs.run_metrics import RunMetrics

if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator, Mapping

    from lapis.client.http_client import Client
    from lapis.client.recording import Recorder
    from lapis.sdk.compute.compute_target import ComputeTarget
    from lapis.sdk.data.abstract_dataset import AbstractDataset
    from lapis.sdk.environments.environment import Environment
    from lapis.sdk.models.model import Model
    from lapis.sdk.models.resource_configuration import ResourceConfiguration
    from lapis.sdk.runs.experiment import Experiment, LabelFilter, RunType
    from lapis.sdk.runs.submitted_run import InputDatasets, _SubmittedRun
    from lapis.sdk.workspace.workspace import Workspace

_factories: dict[str, Callable[..., Run]] = {}


class Run(RunFiles, RunMetrics, RunFamily):
    _own_log = STD_LOG  # what wait_for_completion() shows

    def __init__(self, experiment: Experiment, run_id: str, outputs: Any = None, **kwargs: Any) -> None:
        if not hasattr(experiment, "workspace"):
            raise UserErrorException(f"experiment must be an Experiment, not {type(experiment).__name__}.")
        unknown = sorted(key for key in kwargs if not key.startswith("_"))
        if unknown:
            raise UserErrorException(
                f"{type(self).__name__}() takes experiment, run_id and outputs; unknown: {', '.join(unknown)}."
            )
        self._experiment = experiment
        self._run_id = rules.check_run_id(run_id)
        self._outputs = outputs
        self._view: dict[str, Any] | None = kwargs.get("_view")
        self._recorder: Recorder | None = kwargs.get("_recorder")
        self._below_recorder = bool(kwargs.get("_below_recorder"))  # the recorder is an ancestor's
        if kwargs.get("_check", True) and self._view is None:
            self._refresh()  # an id that is not there is told now, not at the first use

    # -- found

    @classmethod
    def get_context(
        cls, allow_offline: bool = True, used_for_context_manager: bool = False, **kwargs: Any
    ) -> _SubmittedRun:
        """The run that this process belongs to; outside a job an offline run, which prints what it is told."""
        from lapis.sdk.runs.submitted_run import from_environment

        found = from_environment()
        if found is not None:
            return found
        if not allow_offline:
            raise RunEnvironmentException(
                "This process does not run inside a submitted run: AZUREML_RUN_ID is not set. Submit the script with "
                "experiment.submit(), or allow an offline run with get_context(allow_offline=True)."
            )
        from typing import cast

        from lapis.sdk.runs.offline_run import _OfflineRun

        return cast("_SubmittedRun", _OfflineRun(**kwargs))  # not one, but a script logs to both alike

    @classmethod
    def get_submitted_run(cls, **kwargs: Any) -> _SubmittedRun:
        """The older name of get_context()."""
        return cls.get_context(**kwargs)

    @staticmethod
    def get(workspace: Workspace, run_id: str) -> Run:
        """The run with that id, as the class that fits its type."""
        if not hasattr(workspace, "subscription_id"):
            raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
        view = workspace._client.call("GET", f"{workspace._base}/runs/{rules.check_run_id(run_id)}")
        return rehydrate(experiments.Experiment(workspace, view["experiment"], _create_in_cloud=False), view)

    @staticmethod
    def list(
        experiment: Experiment,
        type: RunType = None,
        tags: LabelFilter = None,
        properties: LabelFilter = None,
        status: str | Iterable[str] | None = None,
        include_children: bool = False,
        _rehydrate_runs: bool = True,
        *,
        order_by: str | None = None,
        where: str | Iterable[str] | None = None,
    ) -> Iterator[Run]:
        """Runs of an experiment, the newest first, fetched page by page as they are asked for.

        `order_by` and `where` are Lapis' own: see Experiment.get_runs().
        """
        if not hasattr(experiment, "workspace"):
            raise UserErrorException(f"experiment must be an Experiment, not {experiment.__class__.__name__}.")
        query = {
            "experiment": experiment.name,
            "type": getattr(type, "RUN_TYPE", type),
            "tag": experiments.label_filters(tags),
            "property": experiments.label_filters(properties),
            "status": [status] if isinstance(status, str) else status,
            "children": include_children,
            **_by_metrics(order_by, where),
        }
        return _pages(experiment.workspace, query, experiment)

    @staticmethod
    def list_by_compute(
        compute: ComputeTarget,
        type: RunType = None,
        tags: LabelFilter = None,
        properties: LabelFilter = None,
        status: str | Iterable[str] | None = None,
    ) -> Iterator[Run]:
        """Runs that were sent to a compute target."""
        workspace: Any = getattr(compute, "workspace", None)
        if not hasattr(workspace, "subscription_id"):
            raise UserErrorException(f"compute must be a compute target of a workspace, not {compute!r}.")
        query = {
            "target": compute.name,
            "type": getattr(type, "RUN_TYPE", type),
            "tag": experiments.label_filters(tags),
            "property": experiments.label_filters(properties),
            "status": [status] if isinstance(status, str) else status,
            "children": True,
        }
        return _pages(workspace, query, None)

    @staticmethod
    def add_type_provider(runtype: str, run_factory: Callable[..., Run]) -> None:
        """Let runs of a type come back as a class of one's own: `run_factory(experiment, view)`."""
        if not callable(run_factory):
            raise UserErrorException(f"run_factory must be callable, not {run_factory!r}.")
        _factories[runtype] = run_factory

    # -- what it is

    @property
    def id(self) -> str:
        return self._run_id

    @property
    def identity(self) -> str:
        return self._run_id

    @property
    def experiment(self) -> Experiment:
        return self._experiment

    @property
    def name(self) -> str | None:
        return self._facts().get("display_name")

    @property
    def display_name(self) -> str | None:
        return self._facts().get("display_name") or self._run_id

    @display_name.setter
    def display_name(self, value: str | None) -> None:
        self._change(display_name=rules.check_text("display_name", value))

    @property
    def description(self) -> str | None:
        return self._facts().get("description")

    @description.setter
    def description(self, value: str | None) -> None:
        self._change(description=rules.check_text("description", value))

    @property
    def number(self) -> int:
        return int(self._facts()["number"])

    @property
    def type(self) -> str | None:
        return self._facts().get("type")

    @property
    def status(self) -> str:
        return self.get_status()

    def get_status(self) -> str:
        """NotStarted, Preparing, Queued, Running, Finalizing, CancelRequested, NotResponding, Completed, Failed or
        Canceled."""
        view = self._view if self._view and self._view["status"] in rules.ENDED else self._refresh()
        return str(view["status"])

    def get_detailed_status(self) -> dict[str, Any]:
        """The status, why it is so, since when, and what would end a wait."""
        view = self._refresh()
        last = view["stages"][-1] if view["stages"] else {}
        return {
            "status": view["status"],
            "details": [
                {
                    "code": "Status",
                    "message": ". ".join(filter(None, [last.get("reason"), last.get("until")])),
                    "since": display.when(last.get("at")),
                    "seconds": last.get("seconds"),
                }
            ],
        }

    def get_details(self) -> dict[str, Any]:
        """Everything about the run, in SDK v1's words."""
        return self._details(self._refresh())

    def _details(self, view: Mapping[str, Any]) -> dict[str, Any]:
        inputs, outputs = self._datasets()
        details: dict[str, Any] = {
            "runId": self._run_id,
            "target": view["target"],
            "status": view["status"],
            "startTimeUtc": display.when(view["started_at"]),
            "endTimeUtc": display.when(view["ended_at"]),
            "services": {},
            "properties": view["properties"],
            "inputDatasets": inputs,
            "outputDatasets": outputs,
            "runDefinition": view["definition"],
            "logFiles": self._log_links(),
            "submittedBy": view["created_by"],
            "stages": view["stages"],
        }
        if view["ended_at"] is None:
            del details["endTimeUtc"]
        if view["definition"] is None:
            del details["runDefinition"]
        if view["error"]:
            from lapis.sdk.runs.failure import as_details

            details["error"] = as_details(view)
        if view["warnings"]:
            details["warnings"] = [{"source": "Lapis", "message": warning} for warning in view["warnings"]]
        return details

    def get_details_with_logs(self) -> dict[str, Any]:
        """get_details() with the text of each log in place of its address."""
        details = self.get_details()
        details["logFiles"] = {name: self._text_of(name) for name in details["logFiles"]}
        return details

    def get_logs(self) -> dict[str, str]:
        """The text of each log by its name."""
        return {name: self._text_of(name) for name in self._log_names()}

    def get_all_logs(self, destination: str | os.PathLike[str] | None = None) -> builtins.list[str]:
        """Download all logs to `destination` (this folder without one); the paths of the files."""
        from lapis.domain.tree import resolve_under

        root = os.path.abspath(os.fspath(destination) if destination is not None else ".")
        paths = []
        for name in self._log_names():
            paths.append(resolve_under(root, f"{self._run_id}/{name}"))
            self.download_file(name, paths[-1])
        return paths

    def get_environment(self) -> Environment:
        """The environment that the run was submitted with."""
        from lapis.sdk.config.runconfig import environment_of

        definition = self._facts().get("definition") or self._refresh().get("definition")
        if not definition:
            raise UserErrorException(f"Run {self._run_id} was not submitted, so it has no environment of its own.")
        return environment_of(definition, self.experiment.workspace)

    def get_snapshot_id(self) -> str:
        """The id of the code that was sent with the run."""
        found = self._facts().get("snapshot_id") or self._refresh().get("snapshot_id")
        if not found:
            raise UserErrorException(f"Run {self._run_id} has no snapshot: it was not submitted with a folder of code.")
        return str(found)

    def take_snapshot(self, file_or_folder_path: str | os.PathLike[str]) -> str:
        """Keep a copy of a folder's (or file's) content with the run; the snapshot's id."""
        from lapis.client.snapshot_sending import send_snapshot

        snapshot_id = send_snapshot(self._experiment.workspace, os.fspath(file_or_folder_path)).id
        self._change(snapshot_id=snapshot_id)
        return snapshot_id

    # -- tags and properties

    @property
    def tags(self) -> dict[str, Any]:
        return dict(self._refresh()["tags"])

    def get_tags(self) -> dict[str, Any]:
        return self.tags

    def tag(self, key: str, value: Any = None) -> None:
        """Put a tag on the run; the same key again replaces its value."""
        self.set_tags({key: value})

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        self._change(tags=rules.check_labels("tags", tags))

    def remove_tags(self, tags: str | Iterable[str]) -> dict[str, Any]:
        """Remove a tag or a list of them; the tags left."""
        self._change(remove_tags=[tags] if isinstance(tags, str) else [str(tag) for tag in tags])
        return self.tags

    @property
    def properties(self) -> dict[str, str]:
        return dict(self._refresh()["properties"])

    def get_properties(self) -> dict[str, str]:
        return self.properties

    def add_properties(self, properties: Mapping[str, Any]) -> None:
        """Add properties; one that is set cannot be changed any more."""
        self._change(properties=rules.check_labels("properties", properties))

    # -- life

    def start(self) -> None:
        """Mark the run as started, for one that somebody else made."""
        self._view = self._call("POST", "/start", {})

    def complete(self, _set_status: bool = True) -> None:
        """Mark the run as completed, once all it logged has arrived."""
        self._close()
        self._view = self._call("POST", "/complete", {})

    def fail(self, error_details: Any = None, error_code: Any = None, _set_status: bool = True) -> None:
        """Mark the run as failed, with what a reader should know."""
        self._close()
        body = {
            "error_details": None if error_details is None else str(error_details),
            "error_code": None if error_code is None else str(error_code),
        }
        self._view = self._call("POST", "/fail", body)

    def cancel(self) -> None:
        """Stop the run, in whatever state it is, with every process it started."""
        self._view = self._call("POST", "/cancel", {})

    def clean(self) -> builtins.list[str]:
        """Remove what a run left on its compute target: nothing, as Lapis does so when a run ends."""
        return []

    def flush(self, timeout_seconds: float = 300) -> None:
        if self._recorder is not None:
            self._recorder.flush(timeout_seconds)

    def archive(self) -> None:
        """Hide the run from lists; it can still be got by its id."""
        self._change(archived=True)

    def unarchive(self) -> None:
        self._change(archived=False)

    def delete(self) -> None:
        """Remove the ended run and its children, for good."""
        self._call("DELETE")

    def wait_for_completion(
        self, show_output: bool = False, wait_post_processing: bool = False, raise_on_error: bool = True
    ) -> dict[str, Any]:
        """Wait until the run has ended; with `show_output`, print its log as it grows."""
        from lapis.sdk.runs.waiting import wait_for_completion

        return wait_for_completion(self, show_output, raise_on_error)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self.get_status() in rules.ENDED:
            return
        if kind is None:
            self.complete()
        else:
            self.fail(f"{kind.__name__}: {value}", error_code=kind.__name__)

    # -- what belongs to later releases

    def register_model(
        self,
        model_name: str,
        model_path: str | None = None,
        tags: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        model_framework: str | None = None,
        model_framework_version: str | None = None,
        description: str | None = None,
        datasets: Iterable[tuple[str, AbstractDataset]] | None = None,
        sample_input_dataset: AbstractDataset | None = None,
        sample_output_dataset: AbstractDataset | None = None,
        resource_configuration: ResourceConfiguration | None = None,
        **kwargs: Any,
    ) -> Model:
        """Make a file or a folder of this run the next version of a model. Without `model_path`, that of its name."""
        from lapis.sdk.models.model import register_from_run

        about = {
            "tags": tags, "properties": properties, "description": description, "datasets": datasets,
            "model_framework": model_framework, "model_framework_version": model_framework_version,
            "sample_input_dataset": sample_input_dataset, "sample_output_dataset": sample_output_dataset,
            "resource_configuration": resource_configuration,
        }  # fmt: skip
        self._bring_in(model_path or model_name)
        return register_from_run(self, model_name, model_path, about)

    def get_secret(self, name: str) -> str | None:
        """Return a secret of the workspace's key vault; None if there is none of that name."""
        return self.get_secrets([name])[name]

    def get_secrets(self, secrets: Iterable[str]) -> dict[str, str | None]:
        """Return secrets of the workspace's key vault by name; None for those that are not there."""
        from lapis.sdk.workspace.keyvault import values_of

        return values_of(self._client, self._base.rsplit("/runs/", 1)[0], secrets)

    @property
    def input_datasets(self) -> InputDatasets:
        from lapis.sdk.runs.submitted_run import InputDatasets

        return InputDatasets(self._experiment.workspace)

    # -- pages

    @property
    def portal_url(self) -> str:
        return self.get_portal_url()

    def get_portal_url(self) -> str:
        """The address of the run's page; open it in a browser."""
        from lapis.sdk.workspace.portal import portal_url

        return portal_url(self._experiment.workspace, f"/runs/{self._run_id}")

    @classmethod
    def get_docs_url(cls) -> str:
        return "https://github.com/lapis-ml/lapis/tree/main/docs/runs.md"

    def __repr__(self) -> str:
        view = self._last_seen()
        return display.as_line(
            "Run",
            {
                "Experiment": self._experiment.name,
                "Id": self._run_id,
                "Type": view["type"],
                "Status": view["status"],
            },
        )

    def _repr_html_(self) -> str:
        view = self._last_seen()
        facts = {
            "Experiment": self._experiment.name,
            "Id": self._run_id,
            "Type": view["type"] or "",
            "Status": view["status"],
            "Details Page": "Open the run",
            "Docs Page": "Open the docs",
        }
        return display.as_html(facts, {"Details Page": self.get_portal_url(), "Docs Page": self.get_docs_url()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and (other._run_id, other._experiment.workspace) == (
            self._run_id,
            self._experiment.workspace,
        )

    def __hash__(self) -> int:
        return hash(self._run_id)

    # -- helpers

    @property
    def _client(self) -> Client:
        return self._experiment.workspace._client

    @property
    def _base(self) -> str:
        return f"{self._experiment.workspace._base}/runs/{self._run_id}"

    def _call(self, method: str, suffix: str = "", body: Any = None, **more: Any) -> Any:
        return self._client.call(method, self._base + suffix, body, **more)

    def _download(self, suffix: str, write: Callable[[bytes], Any], query: dict[str, Any]) -> None:
        self._client.download(self._base + suffix, write, query)

    def _refresh(self) -> dict[str, Any]:
        view: dict[str, Any] = self._call("GET")
        self._view = view
        return view

    def _last_seen(self) -> Mapping[str, Any]:
        """For showing: as it is now or, where that cannot be told any more, as it was."""
        try:
            return self._refresh()
        except (AzureMLException, ServiceException):
            return self._view or {"type": None, "status": "Unknown"}

    def _facts(self) -> dict[str, Any]:
        """What never changes, or was seen last."""
        return self._view if self._view is not None else self._refresh()

    def _change(self, **changes: Any) -> None:
        self._view = self._call("PATCH", "", changes)

    def _recording(self) -> tuple[Recorder, str]:
        if self._recorder is None:
            from lapis.sdk.runs.interactive import guest_recorder

            self._recorder = guest_recorder(self)
        return self._recorder, self._run_id if self._below_recorder else ""

    def _close(self) -> None:
        """Before the run is said to have ended: all it logged has arrived."""
        self.flush()

    def _datasets(self) -> tuple[Any, Any]:
        """The exact datasets that the run read, and those that it wrote."""
        from lapis.sdk.data.abstract_dataset import from_registration

        inputs, outputs = [], []
        for use in self._call("GET", "/datasets")["datasets"]:
            view = use["dataset"]
            found = {"id": use["id"]} if view is None else from_registration(self._experiment.workspace, view)
            if use["role"] == "input":
                how = {"type": "RunInput", "inputName": use["as"], "mechanism": (use["mode"] or "direct").capitalize()}
                inputs.append({"dataset": found, "consumptionDetails": how})
            else:
                saved, name = {"savedId": use["id"]}, {"outputName": use["as"]}
                outputs.append(
                    {"identifier": saved, "outputType": "RunOutput", "outputDetails": name, "dataset": found}
                )
        return inputs, outputs

    def _log_names(self) -> builtins.list[str]:
        prefixes = ("user_logs/", "azureml-logs/", "system_logs/", "logs/")
        return [name for name in self.get_file_names() if name.startswith(prefixes)]

    def _log_links(self) -> dict[str, str]:
        prefixes = ("user_logs/", "azureml-logs/", "system_logs/", "logs/")
        server = self._client.endpoint.find()[0]
        return {f["name"]: server + f["link"] for f in self._files() if f["name"].startswith(prefixes)}

    def _text_of(self, name: str) -> str:
        pieces: builtins.list[bytes] = []
        self._read_file(name, pieces.append)
        return b"".join(pieces).decode("utf-8", "replace")


def get_run(experiment: Experiment, run_id: str, rehydrate: bool = True, clean_up: bool = True) -> Run:
    """The run with that id in an experiment."""
    found = Run.get(experiment.workspace, run_id)
    if found.experiment.name != experiment.name:
        raise UserErrorException(
            f"Run {run_id} belongs to experiment '{found.experiment.name}', not to '{experiment.name}'."
        )
    return found


def rehydrate(experiment: Experiment, view: dict[str, Any]) -> Run:
    """A handle of the class that fits the run's type."""
    factory = _factories.get(view.get("type") or "")
    if factory is not None:
        return factory(experiment, view)
    if view.get("type") == rules.SCRIPT_RUN:
        from lapis.sdk.runs.script_run import ScriptRun

        return ScriptRun(experiment, view["id"], _view=view)
    if view.get("type") == rules.SWEEP:
        from lapis.sdk.training.sweep_run import HyperDriveRun

        return HyperDriveRun(experiment, view["id"], _view=view)
    if view.get("type") == rules.PIPELINE_RUN:
        from lapis.sdk.pipelines.pipeline_run import PipelineRun

        return PipelineRun(experiment, view["id"], _view=view)
    if view.get("type") == rules.STEP_RUN:
        from lapis.sdk.pipelines.step_run import StepRun

        return StepRun(experiment, view["id"], _view=view)
    return Run(experiment, view["id"], _view=view)


def _by_metrics(order_by: str | None, where: str | Iterable[str] | None) -> dict[str, Any]:
    """Checked here, so that a slip is told where it was made and not when the first run is asked for."""
    if order_by is None and where is None:
        return {}
    from lapis.domain.run_filter import parse_bound, parse_order

    bounds = [where] if isinstance(where, str) else [*(where or ())]
    ordered = parse_order(order_by).query() if order_by is not None else {}
    return {"where": [str(parse_bound(bound)) for bound in bounds], **ordered}


def _pages(workspace: Workspace, query: Mapping[str, Any], experiment: Experiment | None) -> Iterator[Run]:
    cursor = None
    while True:
        page = workspace._client.call("GET", workspace._base + "/runs", query=dict(query, cursor=cursor))
        for view in page["runs"]:
            home = experiment or experiments.Experiment(workspace, view["experiment"], _create_in_cloud=False)
            yield rehydrate(home, view)
        cursor = page["cursor"]
        if cursor is None:
            return
