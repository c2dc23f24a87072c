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

    config = _config(source, script, command, arguments or [], max_seconds, variables, python)
    home = Experiment(choice.workspace(workspace), chosen, _create_in_cloud=False)
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
