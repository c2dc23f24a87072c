"""From a HyperDriveConfig to a search on the server: checked whole before anything is sent."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lapis.domain.job import Search, TrialTemplate
from lapis.domain.run import SWEEP, check_run_id
from lapis.domain.spaces import without
from lapis.domain.sweeps import HYPERPARAMETERS, check_spec
from lapis.errors import HyperDriveConfigException, UserErrorException
from lapis.sdk.runs.submission import described

if TYPE_CHECKING:
    from lapis.sdk.runs.experiment import Experiment
    from lapis.sdk.runs.run_family import RunFamily
    from lapis.sdk.training.sweep_config import HyperDriveConfig


def sweep_body(
    experiment: Experiment, config: HyperDriveConfig, tags: Any, parent: RunFamily | None, more: dict[str, Any]
) -> dict[str, Any]:
    """The parent run, with what it looks for and what each of its runs is."""
    for run in config._resume_from:
        if run.type != SWEEP:
            raise HyperDriveConfigException(f"resume_from takes hyperparameter searches; run {run.id} is none.")
    spec = config._spec([_to_resume(run) for run in config._resume_child_runs], seed=uuid4().int % 2**31)
    names = list(check_spec(spec).sampling.space)
    for run in (*config._resume_from, *config._resume_child_runs):
        if run.experiment.workspace != experiment.workspace:
            raise UserErrorException(f"Run {run.id} is in another workspace, '{run.experiment.workspace.name}'.")
    run_id = check_run_id(config._custom_run_id or more.get("run_id") or f"HD_{uuid4()}")
    body, job = described(experiment, config._script_config(), tags, parent, more, run_id)
    trial = TrialTemplate(
        job=replace(job, arguments=tuple(without(job.arguments, names))),
        definition=dict(body["definition"], arguments=without(body["definition"]["arguments"] or [], names)),
        properties=body["properties"],
        uses=tuple(body["uses"]),
    )
    properties = {
        **body["properties"],
        "primary_metric_config": json.dumps({"name": spec["metric"], "goal": spec["goal"]}),
        "resume_from": json.dumps(spec["resume_from"] or None),
        "runTemplate": "HyperDrive",
        "azureml.runsource": "hyperdrive",
        "platform": "AML",
    }
    own: dict[str, Any] = {"type": SWEEP, "uses": [], "properties": properties}
    return {**body, **own, "sweep": Search(spec, trial).to_json()}


def _to_resume(run: Any) -> dict[str, Any]:
    text = run.tags.get(HYPERPARAMETERS)
    if text is None:
        raise HyperDriveConfigException(
            f"resume_child_runs takes runs of a hyperparameter search; run {run.id} has no hyperparameters."
        )
    return {"run_id": run.id, "parameters": json.loads(text)}
