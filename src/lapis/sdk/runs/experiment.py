"""The experiment: a name that runs are gathered under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Type, Union, overload

from lapis.domain.run import check_experiment_name, check_labels, label_text
from lapis.errors import NotThereYet, UserErrorException
from lapis.sdk.base import display
from lapis.sdk.workspace.workspace import Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from lapis.sdk.config.script_run_config import ScriptRunConfig
    from lapis.sdk.pipelines.pipeline import Pipeline
    from lapis.sdk.pipelines.pipeline_run import PipelineRun
    from lapis.sdk.runs.run import Run
    from lapis.sdk.runs.script_run import ScriptRun
    from lapis.sdk.training.estimator import MMLBaseEstimator
    from lapis.sdk.training.sweep_config import HyperDriveConfig
    from lapis.sdk.training.sweep_run import HyperDriveRun
    from lapis.sdk.workspace.authentication import AbstractAuthentication

# Which runs: those of a type, by its name or its class.
RunType = Union[str, Type["Run"], None]
# Which tags or properties: one key, several keys, or values by key, where None is any value.
LabelFilter = Union[str, Mapping[str, Any], Iterable[str], None]

_PRIVATE = {"_skip_name_validation", "_id", "_archived_time", "_create_in_cloud", "_experiment_dto"}


class ViewType:
    """Which experiments to list."""

    ActiveOnly = "ActiveOnly"
    All = "All"
    ArchivedOnly = "ArchivedOnly"


class Experiment:
    def __init__(self, workspace: Workspace, name: str, **kwargs: Any) -> None:
        if not hasattr(workspace, "subscription_id"):
            raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
        unknown = sorted(set(kwargs) - _PRIVATE)
        if unknown:
            raise UserErrorException(f"Experiment() takes workspace and name; unknown: {', '.join(unknown)}.")
        self._workspace = workspace
        self._name = check_experiment_name(name)
        self._info: dict[str, Any] | None = None
        if kwargs.get("_create_in_cloud", True):
            self._facts()

    @classmethod
    def _from_info(cls, workspace: Workspace, info: Mapping[str, Any]) -> Experiment:
        made = cls(workspace, info["name"], _create_in_cloud=False)
        made._info = dict(info)
        return made

    # -- runs

    @overload
    def submit(
        self, config: HyperDriveConfig, tags: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> HyperDriveRun: ...

    @overload
    def submit(self, config: Pipeline, tags: Mapping[str, Any] | None = None, **kwargs: Any) -> PipelineRun: ...

    @overload
    def submit(
        self, config: ScriptRunConfig | MMLBaseEstimator, tags: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> ScriptRun: ...

    def submit(
        self,
        config: ScriptRunConfig | MMLBaseEstimator | HyperDriveConfig | Pipeline,
        tags: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Run:
        """Run what `config` describes, and return at once with the run."""
        from lapis.sdk.runs.submission import submit

        return submit(self, config, tags, None, kwargs)

    def start_logging(self, *args: Any, **kwargs: Any) -> Run:
        """Begin an interactive run: it lives in this process until complete(), or the end of a `with` block."""
        from lapis.sdk.runs.interactive import start_logging

        return start_logging(self, *args, **kwargs)

    def get_runs(
        self,
        type: RunType = None,
        tags: LabelFilter = None,
        properties: LabelFilter = None,
        include_children: bool = False,
        *,
        status: str | Iterable[str] | None = None,
        order_by: str | None = None,
        where: str | Iterable[str] | None = None,
    ) -> Iterator[Run]:
        """Runs of this experiment, the newest first.

        Lapis' own: `order_by="metric:accuracy"` gives those with the greatest accuracy first, `"metric:loss:asc"` those
        with the least loss; `where="accuracy>=0.9"` only those that came so far.
        """
        from lapis.sdk.runs.run import Run

        return Run.list(self, type, tags, properties, status, include_children, order_by=order_by, where=where)

    # -- what it is

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    @property
    def workspace_object(self) -> Workspace:
        return self._workspace

    @property
    def name(self) -> str:
        return self._name

    @property
    def id(self) -> str:
        return str(self._facts()["id"])

    @property
    def identity(self) -> str:
        return self._name

    @property
    def tags(self) -> dict[str, Any]:
        return dict(self._facts()["tags"])

    @property
    def archived_time(self) -> datetime | None:
        from datetime import datetime, timezone

        at = self._facts()["archived_at"]
        return None if at is None else datetime.fromtimestamp(at, timezone.utc)

    # -- changed

    def tag(self, key: str, value: Any = None) -> None:
        self.set_tags({key: value})

    def set_tags(self, tags: Mapping[str, Any]) -> None:
        self._change(tags=check_labels("tags", tags))

    def remove_tags(self, tags: str | Iterable[str]) -> dict[str, Any]:
        self._change(remove_tags=[tags] if isinstance(tags, str) else list(tags))
        return self.tags

    def archive(self) -> None:
        """Hide it from lists; its runs stay."""
        self._change(archived=True)

    def reactivate(self, new_name: str | None = None) -> None:
        self._change(archived=False, **({"name": check_experiment_name(new_name)} if new_name else {}))

    def refresh(self) -> None:
        self._info = None
        self._facts()

    @staticmethod
    def delete(workspace: Workspace, experiment_id: str) -> None:
        """Delete an experiment that holds no runs."""
        if not isinstance(experiment_id, str) or not experiment_id:
            raise UserErrorException(f"experiment_id must be the id of an experiment, not {experiment_id!r}.")
        workspace._client.call("DELETE", f"{workspace._base}/experiments/{experiment_id}")

    @staticmethod
    def list(
        workspace: Workspace,
        experiment_name: str | None = None,
        view_type: str = ViewType.ActiveOnly,
        tags: LabelFilter = None,
    ) -> list[Experiment]:
        query = {"name": experiment_name, "view": view_type, "tag": label_filters(tags)}
        found = workspace._client.call("GET", workspace._base + "/experiments", query=query)["experiments"]
        return [Experiment._from_info(workspace, info) for info in found]

    @staticmethod
    def from_directory(path: str, auth: AbstractAuthentication | None = None) -> Experiment:
        raise NotThereYet("Experiment.from_directory", "Name it: Experiment(workspace, name).")

    def get_portal_url(self) -> str:
        return self.portal_url

    @property
    def portal_url(self) -> str:
        from lapis.sdk.workspace.portal import portal_url

        return portal_url(self._workspace, f"/runs?experiment={self._name}")

    @classmethod
    def get_docs_url(cls) -> str:
        return "https://github.com/lapis-ml/lapis/tree/main/docs/experiments.md"

    # -- helpers

    def _facts(self) -> dict[str, Any]:
        if self._info is None:
            path = self._workspace._base + "/experiments"
            self._info = self._workspace._client.call("POST", path, {"name": self._name})
        return self._info

    def _change(self, **changes: Any) -> None:
        path = f"{self._workspace._base}/experiments/{self._facts()['id']}"
        self._info = self._workspace._client.call("PATCH", path, changes)
        self._name = self._info["name"]

    def __repr__(self) -> str:
        return display.as_line("Experiment", {"Name": self.name, "Workspace": self._workspace.name})

    def _repr_html_(self) -> str:
        facts = {"Name": self.name, "Workspace": self._workspace.name, "Report Page": "Open the runs"}
        return display.as_html(facts, {"Report Page": self.portal_url})


def label_filters(labels: LabelFilter) -> list[str] | None:
    """As the server takes them."""
    if labels is None:
        return None
    if isinstance(labels, str):
        return [label_text(labels)]
    if isinstance(labels, Mapping):
        return [label_text(str(key), None if value is None else str(value)) for key, value in labels.items()]
    if isinstance(labels, (list, tuple, set)):
        return [label_text(str(key)) for key in labels]
    raise UserErrorException(f"Tags and properties are filtered by text or a dictionary, not {type(labels).__name__}.")
