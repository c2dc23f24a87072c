"""The parents and children of a run."""

from __future__ import annotations

from lapis.domain import run as rules
from lapis.errors import UserErrorException
from lapis.later import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Mapping, overload

    from lapis.client.http_client import Client
    from lapis.client.recording import Recorder
    from lapis.sdk.config.script_run_config import ScriptRunConfig
    from lapis.sdk.pipelines.pipeline import Pipeline
    from lapis.sdk.pipelines.pipeline_run import PipelineRun
    from lapis.sdk.runs.experiment import Experiment, LabelFilter, RunType
    from lapis.sdk.runs.run import Run
    from lapis.sdk.runs.script_run import ScriptRun
    from lapis.sdk.training.estimator import MMLBaseEstimator
    from lapis.sdk.training.sweep_config import HyperDriveConfig
    from lapis.sdk.training.sweep_run import HyperDriveRun


class RunFamily:
    _run_id: str
    _experiment: Experiment

    @property
    def _client(self) -> Client:
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        raise NotImplementedError

    def _call(self, method: str, suffix: str = "", body: Any = None, **more: Any) -> Any:
        raise NotImplementedError

    def _recording(self) -> tuple[Recorder, str]:
        raise NotImplementedError

    @property
    def parent(self) -> Run | None:
        """The run that this one is a child of, or None."""
        from lapis.sdk.runs.run import Run

        parent_id = self._facts().get("parent_id")
        return None if parent_id is None else Run.get(self._experiment.workspace, parent_id)

    def child_run(self, name: str | None = None, run_id: str | None = None, outputs: Any = None) -> Run:
        """Begin a child run that is logged from this process."""
        return self._make_children(
            [{"display_name": rules.check_text("name", name), "run_id": run_id, "started": True}]
        )[0]

    def create_children(
        self, count: int | None = None, tag_key: str | None = None, tag_values: Iterable[Any] | None = None
    ) -> list[Run]:
        """Make many children at once: `count` of them, or one for each of `tag_values` under `tag_key`."""
        if (tag_key is None) != (tag_values is None):
            raise UserErrorException("create_children() needs tag_key and tag_values together.")
        if isinstance(tag_values, str):
            raise UserErrorException(f"create_children() takes a list of tag_values, not the text {tag_values!r}.")
        if tag_values is None:
            if type(count) is not int or count < 1:
                raise UserErrorException(
                    f"create_children() needs a count of 1 or more, or tag_key and tag_values, not count={count!r}."
                )
            tags: list[dict[str, Any]] = [{}] * count
        else:
            tags = [rules.check_labels("tags", {tag_key: value}) for value in tag_values]
            if not tags or count not in (None, len(tags)):
                raise UserErrorException(f"create_children() was given count={count} and {len(tags)} tag_values.")
        return self._make_children([{"tags": each, "started": True} for each in tags])

    if TYPE_CHECKING:

        @overload
        def submit_child(
            self, config: HyperDriveConfig, tags: Mapping[str, Any] | None = None, **kwargs: Any
        ) -> HyperDriveRun: ...

        @overload
        def submit_child(
            self, config: ScriptRunConfig | MMLBaseEstimator, tags: Mapping[str, Any] | None = None, **kwargs: Any
        ) -> ScriptRun: ...

        @overload
        def submit_child(
            self, config: Pipeline, tags: Mapping[str, Any] | None = None, **kwargs: Any
        ) -> PipelineRun: ...

    def submit_child(
        self,
        config: ScriptRunConfig | MMLBaseEstimator | HyperDriveConfig | Pipeline,
        tags: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Run:
        """Submit a run as a child of this one."""
        from lapis.sdk.runs.submission import submit

        return submit(self._experiment, config, tags, self, kwargs)

    def get_children(
        self,
        recursive: bool = False,
        tags: LabelFilter = None,
        properties: LabelFilter = None,
        type: RunType = None,
        status: str | Iterable[str] | None = None,
        _rehydrate_runs: bool = True,
    ) -> Iterator[Run]:
        """The children, the newest first; with `recursive` their children too. Filters narrow."""
        from lapis.sdk.runs.experiment import Experiment, label_filters
        from lapis.sdk.runs.run import _pages, rehydrate

        workspace = self._experiment.workspace
        wanted = getattr(type, "RUN_TYPE", type)
        statuses = [status] if isinstance(status, str) else status
        if not recursive:
            query = {
                "parent": self._run_id,
                "tag": label_filters(tags),
                "property": label_filters(properties),
                "type": wanted,
                "status": statuses,
            }
            return _pages(workspace, query, None)
        found = self._call("GET", "/descendants")["runs"]
        chosen = [
            view
            for view in reversed(found)
            if view["archived_at"] is None
            and (wanted is None or view["type"] == wanted)
            and (not statuses or view["status"] in statuses)
            and _has(view["tags"], label_filters(tags))
            and _has(view["properties"], label_filters(properties))
        ]
        return iter([rehydrate(Experiment(workspace, v["experiment"], _create_in_cloud=False), v) for v in chosen])

    def _make_children(self, wanted: list[dict[str, Any]]) -> list[Run]:
        from uuid import uuid4

        from lapis.sdk.runs.run import Run

        bodies = [
            {
                **each,
                "experiment": self._experiment.name,
                "parent_id": self._run_id,
                "run_id": rules.check_run_id(each.get("run_id") or str(uuid4())),
                "nonce": uuid4().hex,
            }
            for each in wanted
        ]
        path = self._experiment.workspace._base + "/runs"
        views = self._client.call("POST", path, {"runs": bodies})["runs"]
        recorder, _ = self._recording()
        return [
            Run(self._experiment, view["id"], _view=view, _recorder=recorder, _below_recorder=True) for view in views
        ]


def _has(labels: Any, filters: Any) -> bool:
    wanted = [rules.parse_label(text) for text in filters or ()]
    return all(key in labels and value in (None, labels[key]) for key, value in wanted)
