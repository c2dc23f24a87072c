"""`lapis run submit`: sends a folder and a script to run, or says what would be sent."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lapis.cli import choice, logs, progress, runs, screen
from lapis.cli.options import Json, WorkspaceName, labels
from lapis.domain import in_words, log_names

if TYPE_CHECKING:
    from lapis.sdk.config.script_run_config import ScriptRunConfig
    from lapis.sdk.workspace.workspace import Workspace

_DISTRIBUTIONS = ("mpi", "pytorch", "tensorflow")


def submit(
    script: Annotated[
        str | None, typer.Argument(metavar="SCRIPT", help="The script, as it is called inside the folder.")
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGS", help="Handed to the script as they are, also those that begin with --."),
    ] = None,
    experiment: Annotated[
        str | None, typer.Option("--experiment", "-e", metavar="NAME", help="The folder's name by default.")
    ] = None,
    source: Annotated[str, typer.Option("--source", "-s", metavar="DIR", help="The folder to send.")] = ".",
    command: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A shell command to run in the folder, in place of a script.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show the log until the run ends.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent; send nothing.")] = False,
    max_seconds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop the run when it takes longer.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Put a tag on the run. Repeat it.")] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="What the run is called in lists.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set a variable for the script. Repeat it.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The Python to run it with; the one of lapis by default.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="NAME", help="The compute target; this machine by default.")
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="A registered environment, NAME[:VERSION], or a conda or pip file."),
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, metavar="N", help="On so many nodes of the target.")] = None,
    distribution: Annotated[
        str | None, typer.Option(metavar="|".join(_DISTRIBUTIONS), help="How its processes find each other.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="On each node, with --distribution; 1 by default.")
    ] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Send a folder and run a script of it.

    Options of lapis stand before SCRIPT; all that follows it is the script's.
    """
    if (script is None) == (command is None):
        raise typer.BadParameter("give either a script or --command", param_hint="SCRIPT")
    tags = labels(tag, "--tag")
    variables = labels(env, "--env", value_needed=True)
    chosen = experiment if experiment is not None else name_of(source)
    if dry_run:
        _tell_plan(source, script, command, arguments or [], chosen)
        return
    from lapis.sdk.runs.experiment import Experiment

    ws = choice.workspace(workspace)
    config = _config(source, script, command, arguments or [], max_seconds, variables, python)
    _place(config.run_config, target, nodes, distribution, processes)
    if environment is not None:
        if python is not None:
            raise typer.BadParameter("an environment has its own Python", param_hint="--python")
        config.run_config.environment = _environment(ws, environment)
        config.run_config.environment.environment_variables.update(variables)
    home = Experiment(ws, chosen, _create_in_cloud=False)
    with progress.of_uploads():
        run = home.submit(config, tags=tags, display_name=name)
    page = run.get_portal_url()
    if follow:
        _follow(run, page)
        return

    def show() -> None:
        print(f"Submitted run {run.id} of experiment '{chosen}'.")
        print(f"Page:    {page}")
        print(f"Follow:  lapis run logs -f {run.id}")

    screen.answer({**runs.summary(run._facts()), "portal_url": page}, show)


def _place(run_config: Any, target: str | None, nodes: int | None, kind: str | None, processes: int | None) -> None:
    """Where it runs, and as how many."""
    from lapis.sdk.config import distribution

    if target is not None:
        run_config.target = target
    if kind is None:
        if processes is not None:
            raise typer.BadParameter("say which processes with --distribution", param_hint="--processes")
        if nodes is not None:
            run_config.node_count = nodes
        return
    if kind not in _DISTRIBUTIONS:
        raise typer.BadParameter(
            f"{kind!r} is not known. Known: {', '.join(_DISTRIBUTIONS)}", param_hint="--distribution"
        )
    count, each = nodes or 1, processes or 1
    if kind == "tensorflow" and each != 1:
        raise typer.BadParameter("TensorFlow has one worker on each node", param_hint="--processes")
    made: dict[str, Any] = {
        "mpi": distribution.MpiConfiguration(each, count),
        "pytorch": distribution.PyTorchConfiguration("Nccl", count * each, count),
        "tensorflow": distribution.TensorflowConfiguration(count, 0),
    }
    distribution.apply_distributed(run_config, made[kind])


def _environment(workspace: Workspace, given: str) -> Any:
    """A conda file by its ending, a requirements file by its; else the name of a registered environment."""
    from lapis.sdk.environments.environment import Environment

    if os.path.isfile(given):
        stem, ending = os.path.splitext(os.path.basename(given))
        read = Environment.from_pip_requirements if ending == ".txt" else Environment.from_conda_specification
        return read(stem, given)
    name, colon, version = given.rpartition(":")
    found = Environment.get(workspace, name, version) if colon else Environment.get(workspace, given)
    return found.clone(str(found.name))  # variables of this run are not its own


def _config(
    source: str,
    script: str | None,
    command: str | None,
    arguments: list[str],
    max_seconds: int | None,
    variables: dict[str, str | None],
    python: str | None,
) -> ScriptRunConfig:
    from lapis.sdk.config.runconfig import RunConfiguration
    from lapis.sdk.config.script_run_config import MAX_DURATION_SECONDS_DEFAULT, ScriptRunConfig

    run_config = RunConfiguration()
    run_config.environment.environment_variables.update(variables)
    if python is not None:
        run_config.environment.python.user_managed_dependencies = True
        run_config.environment.python.interpreter_path = python
    return ScriptRunConfig(
        source_directory=source,
        script=script,
        command=command,
        arguments=arguments,
        run_config=run_config,
        max_run_duration_seconds=max_seconds or MAX_DURATION_SECONDS_DEFAULT,
    )


def script_config(source: str, script: str, arguments: list[str], python: str | None) -> ScriptRunConfig:
    """What a search runs."""
    return _config(source, script, None, arguments, None, {}, python)


def _follow(run: Any, page: str) -> None:
    """Until the end. What is not the log goes to stderr, so that stdout is the log alone."""
    screen.notice(f"Submitted run {run.id} of experiment '{run.experiment.name}'.\nPage: {page}")
    view = logs.follow(run, log_names.STD_LOG, quiet=screen.wants_json())
    screen.answer({**runs.summary(view), "error": view["error"], "portal_url": page}, lambda: None)
    reason = view["stages"][-1]["reason"]
    if view["status"] == "Completed":
        screen.notice(f"Run {run.id} completed in {screen.duration(runs.seconds_of(view))}.")
        return
    screen.notice(f"Error: Run {run.id} {view['status'].lower()}: {reason}. `lapis run show {run.id}` tells more.")
    raise typer.Exit(1)


def _tell_plan(source: str, script: str | None, command: str | None, arguments: list[str], experiment: str) -> None:
    from lapis.client import snapshot
    from lapis.domain.run import check_experiment_name
    from lapis.errors import UserErrorException

    check_experiment_name(experiment)
    plan = snapshot.scan(source)
    if script is not None and os.path.normpath(script) not in {file.path for file in plan.files}:
        skipped = {path: reason for path, reason in plan.skipped if (script + "/").startswith(path.rstrip("/") + "/")}
        why = next(iter(skipped.values()), f"there is no such file in {plan.folder}")
        raise UserErrorException(f"Script '{script}' would not be sent: {why}.")
    warning = snapshot.warning_for(plan)

    def show() -> None:
        screen.table(
            ["WOULD BE SENT", "SIZE"], [(file.path, in_words.size(file.size)) for file in plan.files], right=["SIZE"]
        )
        if plan.skipped:
            print()
            screen.table(["SKIPPED", "WHY"], plan.skipped)
        count = len(plan.files)
        print(f"\n{count} {'file' if count == 1 else 'files'}, {in_words.size(plan.total_size)}, from {plan.folder}.")
        print(f"To experiment '{experiment}'. Nothing was sent.")
        if warning:
            screen.notice(f"Lapis: {warning}")

    screen.answer(
        {
            "folder": plan.folder,
            "experiment": experiment,
            "script": script,
            "command": command,
            "arguments": arguments,
            "files": [{"path": file.path, "size": file.size} for file in plan.files],
            "total_size": plan.total_size,
            "skipped": [{"path": path, "reason": reason} for path, reason in plan.skipped],
            "warning": warning,
        },
        show,
    )


def name_of(source: str) -> str:
    """The folder's name as far as an experiment may have it."""
    name = re.sub(r"[^a-zA-Z0-9_-]+", "-", os.path.basename(os.path.abspath(source))).strip("-_")[:255]
    return name or "default"
