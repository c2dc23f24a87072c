"""The tree of commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lapis.cli import (
    adopt,
    compute,
    data,
    env,
    files,
    login,
    logs,
    models,
    pipeline,
    runs,
    secret,
    server,
    services,
    submit,
    sweep,
    upkeep,
    workspaces,
)
from lapis.version import VERSION


class _Group(TyperGroup):
    """A group whose --help is off, not unknown, when it is not given: Typer would load Pydantic to make sure."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option


def _group(about: str) -> typer.Typer:
    group = typer.Typer(
        help=about,
        cls=_Group,
        context_settings={"help_option_names": ["-h", "--help"]},
        invoke_without_command=True,
        add_completion=False,  # its two options would load Pydantic as well; docs/cli.md has the other way
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    group.callback()(_show_help)
    return group


def _show_help(context: typer.Context) -> None:
    """A group alone tells what it holds."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lapis {VERSION}")
        raise typer.Exit()


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Say which release this is.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    _show_help(context)


app = _group("Lapis runs code written for the Azure Machine Learning SDK v1 on machines you own.")
app.callback()(_root)
app.command("init")(workspaces.init)
app.command("adopt")(adopt.adopt)
app.command("serve")(server.serve)
app.command("prepare-server")(server.prepare)
app.command("status")(server.status)
app.command("stop")(server.stop)
app.command("open")(server.open_page)
app.command("login")(login.login)
app.command("logout")(login.logout)
app.command("gc")(upkeep.collect)
app.command("backup")(upkeep.back_up)
app.command("restore")(upkeep.restore)
app.command("doctor")(upkeep.examine)

run = _group("Submit runs, look at them, follow their logs, get their files.")
run.command("submit", context_settings={"allow_interspersed_args": False})(submit.submit)
run.command("list")(runs.list_runs)
run.command("show")(runs.show)
run.command("logs")(logs.logs)
run.command("metrics")(runs.metrics)
run.command("compare")(runs.compare)
run.command("files")(files.list_files)
run.command("download")(files.download)
run.command("cancel")(runs.cancel)
run.command("delete")(runs.delete)
run.command("archive")(runs.archive)
app.add_typer(run, name="run")

search = _group("Search for hyperparameters, and look at searches.")
search.command("submit", context_settings={"allow_interspersed_args": False})(sweep.begin)
search.command("show")(sweep.show)
app.add_typer(search, name="sweep")

steps = _group("Look at pipelines: their steps, their logs, their graph.")
steps.command("list")(pipeline.list_pipelines)
steps.command("show")(pipeline.show)
steps.command("logs")(pipeline.show_logs)
steps.command("graph")(pipeline.graph)
app.add_typer(steps, name="pipeline")

environment = _group("Build environments, look at them, compare them, remove them.")
environment.command("list")(env.list_environments)
environment.command("show")(env.show)
environment.command("build")(env.build)
environment.command("diff")(env.diff)
environment.command("verify")(env.verify)
environment.command("prune")(env.prune)
app.add_typer(environment, name="env")

target = _group("Make compute targets, look at them, change them, remove them.")
target.command("create")(compute.create)
target.command("list")(compute.list_computes)
target.command("show")(compute.show)
target.command("update")(compute.update)
target.command("delete")(compute.delete)
target.command("preempt")(compute.preempt)
app.add_typer(target, name="compute")

dataset = _group("Look at registered datasets, register others.")
dataset.command("list")(data.list_datasets)
dataset.command("show")(data.show_dataset)
dataset.command("register")(data.register_dataset)
app.add_typer(dataset, name="dataset")

datastore = _group("Look at datastores, copy files to them and from them.")
datastore.command("list")(data.list_datastores)
datastore.command("show")(data.show_datastore)
datastore.command("upload")(data.upload)
datastore.command("download")(data.download)
app.add_typer(datastore, name="datastore")

model = _group("Register models, look at them, download them, export them.")
model.command("list")(models.list_models)
model.command("show")(models.show)
model.command("register")(models.register)
model.command("download")(models.download)
model.command("export")(models.export)
app.add_typer(model, name="model")

service = _group("Look at deployed services, ask them, remove them.")
service.command("list")(services.list_services)
service.command("show")(services.show)
service.command("logs")(services.logs)
service.command("call")(services.call)
service.command("delete")(services.delete)
app.add_typer(service, name="service")

secrets = _group("Keep secrets in the workspace's key vault, for scripts that must not hold them.")
secrets.command("set")(secret.set_secret)
secrets.command("list")(secret.list_secrets)
secrets.command("delete")(secret.delete)
app.add_typer(secrets, name="secret")

experiment = _group("Look at experiments.")
experiment.command("list")(workspaces.list_experiments)
app.add_typer(experiment, name="experiment")

workspace = _group("Look at workspaces.")
workspace.command("list")(workspaces.list_workspaces)
app.add_typer(workspace, name="workspace")
