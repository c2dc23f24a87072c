"""From a configuration to a run on the server: checked whole before anything is sent."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lapis.client.http_client import quoted
from lapis.client.snapshot_sending import send_snapshot
from lapis.client.submitting_python import submitting_python
from lapis.domain import settings as settings_module
from lapis.domain.data import NEEDED_FOR_TABLES, cannot_read_tables
from lapis.domain.environment import called
from lapis.domain.job import DatasetInput, Job, Mpi, WantedEnvironment, Word
from lapis.domain.run import SCRIPT_RUN, check_labels, check_run_id, check_text
from lapis.domain.tree import check_path, without_dot
from lapis.errors import (
    ComputeTargetException,
    ExperimentExecutionException,
    NotThereYet,
    UserErrorException,
)
from lapis.sdk.config.distribution import distribution_of
from lapis.sdk.config.resume import resumed_run
from lapis.sdk.config.script_run_config import ScriptRunConfig, get_run_config_from_script_run
from lapis.sdk.data import run_data
from lapis.sdk.data.config_data import named_in
from lapis.sdk.environments.conda_dependencies import PYTHON_DEFAULT_VERSION
from lapis.sdk.environments.environment_resolution import resolve
from lapis.sdk.runs.run_definition import run_definition

if TYPE_CHECKING:
    from lapis.sdk.config.runconfig import RunConfiguration
    from lapis.sdk.runs.experiment import Experiment
    from lapis.sdk.runs.run import Run
    from lapis.sdk.runs.run_family import RunFamily
    from lapis.sdk.workspace.workspace import Workspace

_KNOWN = {"run_id", "display_name", "description", "properties"}
_PLAIN = (str, int, float, bool)
_EVERYWHERE = ("python", "pip", "setuptools", "wheel")


def submit(experiment: Experiment, config: Any, tags: Any, parent: RunFamily | None, more: dict[str, Any]) -> Run:
    from lapis.sdk.runs.run import rehydrate

    if hasattr(config, "_script_run_config"):  # an estimator
        overrides = {name: more[name] for name in config._overridable if name in more}
        more = {name: value for name, value in more.items() if name not in overrides}
        config = config._script_run_config(overrides)
    if hasattr(config, "_spec"):  # a HyperDriveConfig
        from lapis.sdk.training.sweep_submission import sweep_body

        body = sweep_body(experiment, config, tags, parent, more)
    elif hasattr(config, "_body"):  # a Pipeline
        body = config._body(experiment, tags, parent, more)
    elif isinstance(config, ScriptRunConfig):
        run_id = check_run_id(more.get("run_id") or _new_id(experiment.name))
        body = run_body(experiment, config, tags, parent, more, run_id)
    else:
        raise _cannot_submit(config)
    workspace = experiment.workspace
    view = workspace._client.call("POST", workspace._base + "/runs", {"runs": [body]})["runs"][0]
    run = rehydrate(experiment, view)
    if body.get("pipeline") is not None:
        print(f"Submitted PipelineRun {run.id}\nLink to Azure Machine Learning Portal: {run.get_portal_url()}")
    return run


def run_body(
    experiment: Experiment, config: ScriptRunConfig, tags: Any, parent: RunFamily | None, more: dict[str, Any],
    run_id: str,
) -> dict[str, Any]:  # fmt: skip
    """What the server gets to know of a run of a script. Its snapshot is there when this returns."""
    body, job = described(experiment, config, tags, parent, more, run_id)
    return {**body, "job": job.to_json()}


def described(
    experiment: Experiment, config: ScriptRunConfig, tags: Any, parent: RunFamily | None, more: dict[str, Any],
    run_id: str,
) -> tuple[dict[str, Any], Job]:  # fmt: skip
    """As `run_body`, with the job apart."""
    unknown = sorted(set(more) - _KNOWN)
    if unknown:
        raise UserErrorException(
            f"submit() of a script does not know {', '.join(unknown)}. Known: tags, {', '.join(sorted(_KNOWN))}."
        )
    checked_tags = check_labels("tags", tags or {})
    properties = check_labels("properties", more.get("properties") or {})
    display_name = check_text("display_name", more.get("display_name"))
    description = check_text("description", more.get("description"))
    run_config = get_run_config_from_script_run(config)
    if hasattr(run_config.environment, "get_environment"):  # named by reference
        run_config.environment = run_config.environment.get_environment(experiment.workspace)
    folder = checked_folder(config.source_directory)
    job = checked_job(experiment.workspace, run_config, folder)
    given = [*(run_config.arguments or []), *(run_config.command if isinstance(run_config.command, list) else [])]
    given += named_in(run_config, experiment.workspace)
    data = run_data.collect(given, run_config.data_references, experiment.workspace, run_id)
    job = replace(
        job,
        arguments=run_data.with_names(job.arguments, data),
        command=run_data.with_names(job.command, data) if isinstance(job.command, tuple) else job.command,
        inputs=data.inputs,
        outputs=data.outputs,
        url_mirrors=run_data.checked_mirrors(),
        mount=run_data.checked_mount(),
        resumes=resumed_run(given),
    )
    check_tables(job)
    target, kind = checked_target(experiment.workspace, run_config.target)
    snapshot_id, said = send_snapshot(experiment.workspace, folder)
    body = {
        "experiment": experiment.name,
        "run_id": run_id,
        "nonce": uuid4().hex,
        "type": SCRIPT_RUN,
        "parent_id": parent._run_id if parent is not None else None,
        "display_name": display_name,
        "description": description,
        "tags": checked_tags,
        "properties": {
            "_azureml.ComputeTargetType": kind,
            "ContentSnapshotId": snapshot_id,
            **git_facts(folder),
            "ProcessInfoFile": "azureml-logs/process_info.json",
            "ProcessStatusFile": "azureml-logs/process_status.json",
            **properties,
        },
        "definition": run_definition(
            run_config,
            target,
            experiment.name,
            given,
            {each.name: each.dataset_id for each in data.inputs if isinstance(each, DatasetInput)},
        ),
        "snapshot_id": snapshot_id,
        "target": target,
        "uses": data.uses,
        "warnings": list(job.notices),
        "accepted": f"Accepted with a snapshot of {said}",
        "created_by": submitter_name(),
    }
    return body, job


def check_tables(job: Job) -> None:
    """This interpreter can be asked here; what an environment brings the server knows."""
    tables = job.tables()
    if not tables or job.environment is not None or job.python != sys.executable:
        return
    missing = [name for name in NEEDED_FOR_TABLES if find_spec(name) is None]
    if missing:
        raise UserErrorException(cannot_read_tables(tables, sys.executable, missing))


def _cannot_submit(config: Any) -> Exception:
    if type(config).__name__ == "AutoMLConfig":
        return NotThereYet("Experiment.submit(AutoMLConfig)")
    known = "a ScriptRunConfig, an estimator, a HyperDriveConfig or a Pipeline"
    return UserErrorException(f"submit() takes {known}, not {type(config).__name__} ({config!r}).")


def checked_folder(source_directory: str) -> str:
    folder = os.path.abspath(source_directory)
    if not os.path.isdir(folder):
        raise UserErrorException(f"source_directory {folder} is not a folder. Nothing was submitted.")
    return folder


def checked_job(workspace: Workspace, run_config: RunConfiguration, folder: str) -> Job:
    """All of it but the data."""
    script, command = run_config.script, run_config.command
    if command:
        script = None
        command = command if isinstance(command, str) else tuple(_argument("command", part) for part in command)
    elif script:
        script = _checked_script(script, folder)
    else:
        raise UserErrorException("There is nothing to run: give ScriptRunConfig a script or a command.")
    distribution = distribution_of(run_config)
    mpi = isinstance(distribution, Mpi)
    horovod_in = script if mpi and script and _imports_horovod(os.path.join(folder, script)) else ""
    python, wanted, notices = interpreter(workspace, run_config.environment, mpi, horovod_in)
    return Job(
        script=script or None,
        command=command or None,
        arguments=tuple(_argument("arguments", each) for each in run_config.arguments or []),
        python=python,
        environment=wanted,
        environment_variables=_variables(run_config.environment.environment_variables or {}),
        max_seconds=run_config.max_run_duration_seconds,
        framework=run_config.framework,
        communicator=run_config.communicator,
        node_count=run_config.node_count or 1,
        distribution=distribution,
        priority=run_config.priority or 0,
        watch=tuple(_watched(folder) for folder in run_config.history.directories_to_watch or []),
        collect_outputs=bool(run_config.history.output_collection),
        notices=tuple(notices),
    )


def _checked_script(script: str, folder: str) -> str:
    path = os.path.abspath(os.path.join(folder, script))
    if not path.startswith(folder.rstrip(os.sep) + os.sep):
        raise UserErrorException(
            f"Script {script!r} lies outside source_directory {folder}. Only what is in that folder goes with the run."
        )
    if not os.path.isfile(path):
        near = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
        raise UserErrorException(
            f"There is no script {script!r} in {folder}. Python files there: {', '.join(near[:10]) or 'none'}."
        )
    return check_path(os.path.relpath(path, folder).replace(os.sep, "/"))


def _imports_horovod(path: str) -> bool:
    with open(path, "rb") as file:
        return re.search(rb"(?m)^[ \t]*(import|from)[ \t]+horovod\b", file.read()) is not None


def _watched(folder: Any) -> str:
    """A folder below the working folder whose files are streamed while they grow."""
    if not isinstance(folder, str):
        raise UserErrorException(f"history.directories_to_watch holds names of folders, not {folder!r}.")
    return check_path(without_dot(folder))


def _variables(given: Any) -> dict[str, str]:
    checked = {}
    for name, value in dict(given).items():
        text = "" if value is None else str(value)
        if not isinstance(name, str) or not name or "=" in name or "\0" in name + text:
            raise UserErrorException(
                f"Environment variable {name!r} cannot be set: a name is text without '=', and neither name nor value "
                "holds a null character."
            )
        checked[name] = text
    return checked


def _argument(where: str, value: Any) -> Word:
    if run_data.is_data(value):
        return run_data.as_argument(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, _PLAIN):
        if "\0" in str(value):
            raise ExperimentExecutionException(f"{where} cannot hold a null character ({value!r}).")
        return str(value)
    if hasattr(value, "item") and callable(value.item):  # a number of numpy's
        return str(value.item())
    raise ExperimentExecutionException(f"{where} can hold text and numbers, not {type(value).__name__} ({value!r}).")


def checked_target(workspace: Workspace, target: Any) -> tuple[str, str]:
    """Its name, and its kind in small letters. One that does not exist is refused before anything is sent."""
    name = getattr(target, "name", target)
    if name in (None, "", "local"):
        return "local", "local"
    if not isinstance(name, str):
        raise ComputeTargetException(f"A compute target is given by its name or as an object, not {target!r}.")
    found = workspace._client.call("GET", f"{workspace._base}/computes/{quoted(name)}")
    return name, str(found["type"]).lower()


def interpreter(
    workspace: Workspace, environment: Any, mpi: bool = False, horovod_in: str = ""
) -> tuple[str, WantedEnvironment | None, list[str]]:
    """Which Python runs the script, or which environment; and what the user should know about the choice."""
    section, mode = environment.python, settings_module.load().environments
    in_image = mode == "container" or _names_image(environment.docker)
    if section.user_managed_dependencies and (not in_image or mode == "host"):
        chosen = section.interpreter_path
        return (submitting_python().path if chosen in (None, "", "python") else str(chosen)), None, []
    if not _asked_for(environment) and not in_image:
        return submitting_python().path, None, []
    if mode == "host":
        said = f"{called(environment.name)} is not built; the script runs in {submitting_python().path}."
        return submitting_python().path, None, [f"LAPIS_ENVIRONMENTS=host: {said}"]
    resolved = resolve(workspace, environment, mpi, horovod_in)
    wanted = WantedEnvironment(resolved["lock"], environment.name, tuple(resolved["said"]))
    told = [
        f"{each['asked']} -> {each['given'] or 'not installed'}: {each['reason']}" for each in resolved["substitutions"]
    ]
    for line in told:
        if line.startswith("python"):  # what is most likely to break a script is told at once, not only in the log
            print(f"Lapis: {called(environment.name)}: {line}", file=sys.stderr)
    return submitting_python().path, wanted, [*told, *resolved["notices"]]


def _names_image(docker: Any) -> bool:
    """Azure's own base images stand in every definition and mean nothing; any other was chosen."""
    image = docker.base_image
    return bool(docker.base_dockerfile) or bool(image and not image.startswith("mcr.microsoft.com/azureml/"))


def _asked_for(environment: Any) -> list[str]:
    """Packages beyond what every environment has."""
    dependencies = environment.python.conda_dependencies
    asked = [str(package) for package in dependencies.conda_packages if str(package).split("=")[0] not in _EVERYWHERE]
    version = dependencies.get_python_version() or PYTHON_DEFAULT_VERSION
    if version.split(".")[:2] != PYTHON_DEFAULT_VERSION.split("."):
        asked.append(f"Python {version}")
    asked += [str(package) for package in dependencies.pip_packages if not str(package).startswith("azureml-")]
    return asked


def git_facts(folder: str) -> dict[str, str]:
    from lapis.client.git import facts

    return facts(folder)


def _new_id(experiment: str) -> str:
    import time

    return f"{experiment[:200]}_{int(time.time())}_{uuid4().hex[:8]}"


def submitter_name() -> str:
    from lapis.sdk.runs.interactive import user_name

    return user_name()
