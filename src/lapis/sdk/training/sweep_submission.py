"""From a HyperDriveConfig to a search on the server: checked whole before anything is sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lapis.domain.job import Search, TrialTemplate
from lapis.domain.run import SWEEP, check_run_id
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
    check_spec(spec)
    for run in (*config._resume_from, *config._resume_child_runs):
        if run.experiment.workspace != experiment.workspace:
            raise UserErrorException(f"Run {run.id} is in another workspace, '{run.experiment.workspace.name}'.")
    run_id = check_run_id(config._custom_run_id or more.get("run_id") or f"HD_{uuid4()}")
    body, job = described(experiment, config._script_config(), tags, parent, more, run_id)
    trial = TrialTemplate(
        job=job, definition=body["definition"], properties=body["properties"], uses=tuple(body["uses"])
    )
    properties = {
        **body["properties"],
        "primary_metric_config": json.dumps({"name": spec["metric"], "goal": spec["goal"]}),
        "resume_from": json.dumps(spec["resume_from"] or None),
        "runTemplate": "HyperDrive",
        "azureml.runsource": "hyperdrive",
        "platform": "AML",
    }
    for name in ("ProcessInfoFile", "ProcessStatusFile", "_azureml.ComputeTargetType"):  # a search is no process
        properties.pop(name)
    tags = {**_system_tags(spec), **body["tags"]}
    own: dict[str, Any] = {"type": SWEEP, "uses": [], "properties": properties, "tags": tags}
    return {**body, **own, "sweep": Search(spec, trial).to_json()}


def _system_tags(spec: dict[str, Any]) -> dict[str, str]:
    """The tags that Azure's service puts on a search: what was asked for, as JSON."""
    sampling, policy = spec["sampling"], dict(spec["policy"])
    policy_name = str(policy.pop("name")).upper()
    told = {
        "max_concurrent_jobs": spec["max_concurrent"] or spec["max_total"],
        "max_total_jobs": spec["max_total"],
        "max_duration_minutes": spec["max_minutes"],
        "policy_config": {"name": policy_name, "properties": policy.get("properties", policy)},
        "generator_config": {"name": sampling["name"].upper(), "parameter_space": sampling["parameter_space"]},
        "primary_metric_config": {"name": spec["metric"], "goal": spec["goal"]},
        "resume_child_runs": [each["run_id"] for each in spec["resume_child_runs"]] or None,
    }
    return {f"_aml_system_{name}": json.dumps(value) for name, value in told.items()}


def _to_resume(run: Any) -> dict[str, Any]:
    text = run.tags.get(HYPERPARAMETERS)
    if text is None:
        raise HyperDriveConfigException(
            f"resume_child_runs takes runs of a hyperparameter search; run {run.id} has no hyperparameters."
        )
    return {"run_id": run.id, "parameters": json.loads(text)}
