"""Commands about workspaces and experiments: init, workspace list, experiment list."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace


def init(
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The workspace; the folder's name by default.")
    ] = None,
    path: Annotated[str, typer.Option(metavar="DIR", help="The folder that gets .azureml/config.json.")] = ".",
    as_json: Json = False,
) -> None:
    """Make a workspace, or find it, and let this folder use it.

    Writes .azureml/config.json, which Workspace.from_config() and every command find from here and below.
    """
    folder = os.path.abspath(path)
    file = os.path.join(folder, ".azureml", "config.json")
    _check_folder(folder)
    workspace = _configured(file, name) if os.path.isfile(file) else _made(folder, name)
    address = workspace._client.endpoint.find()[0]
    screen.answer(
        {
            "workspace": workspace.name,
            "subscription_id": workspace.subscription_id,
            "resource_group": workspace.resource_group,
            "config": file,
            "address": address,
        },
        lambda: print(f"Workspace '{workspace.name}' of the server at {address} is used in {folder}.\nConfig: {file}"),
    )


def list_workspaces(as_json: Json = False) -> None:
    """List the workspaces of the server."""
    from lapis.client import local_server
    from lapis.sdk.base.display import when

    choice.use_configured_server()
    found = sorted(local_server.client().call("GET", "/workspaces")["workspaces"], key=lambda info: str(info["name"]))
    kept = ("name", "id", "subscription_id", "resource_group", "friendly_name", "description", "tags")
    screen.answer(
        {"workspaces": [{**{key: w[key] for key in kept}, "created_at": when(w["created_at"])} for w in found]},
        lambda: screen.table(
            ["WORKSPACE", "SUBSCRIPTION", "RESOURCE GROUP", "CREATED"],
            [(w["name"], w["subscription_id"], w["resource_group"], screen.ago(w["created_at"])) for w in found],
        ),
    )


def list_experiments(
    everything: Annotated[bool, typer.Option("--all", "-a", help="Archived ones too.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """List the experiments of the workspace."""
    from lapis.sdk.base.display import when
    from lapis.sdk.runs.experiment import Experiment, ViewType

    ws = choice.workspace(workspace)
    found = [e._facts() for e in Experiment.list(ws, view_type=ViewType.All if everything else ViewType.ActiveOnly)]
    rows = [
        {
            "name": e["name"],
            "id": e["id"],
            "tags": e["tags"],
            "created_at": when(e["created_at"]),
            "archived": e["archived_at"] is not None,
        }
        for e in found
    ]

    def show() -> None:
        if not found:
            screen.notice(f"No experiments in workspace '{ws.name}' yet. `lapis run submit` makes the first.")
            return
        screen.table(
            ["EXPERIMENT", "CREATED", "TAGS"],
            [(e["name"], screen.ago(e["created_at"]), tags_text(e["tags"], e["archived_at"])) for e in found],
        )

    screen.answer({"experiments": rows}, show)


def tags_text(tags: dict[str, str | None], archived_at: float | None = None) -> str:
    shown = {key: value for key, value in tags.items() if not key.startswith("_aml_system_")}
    words = [key if value is None else f"{key}={value}" for key, value in shown.items()]
    return ", ".join(words + (["(archived)"] if archived_at is not None else []))


def _check_folder(folder: str) -> None:
    """Before anything is made: the file can be written afterwards."""
    from lapis.errors import UserErrorException

    if not os.path.isdir(folder):
        raise UserErrorException(f"There is no folder {folder}. Make it first, or choose another with --path.")
    if not os.access(folder, os.W_OK):
        raise UserErrorException(f"Folder {folder} cannot be written. Choose another with --path.")


def _configured(file: str, name: str | None) -> Workspace:
    """The workspace that the file names. It is not overwritten: it may have come from Azure's portal."""
    from lapis.errors import Conflict
    from lapis.sdk.workspace import workspace_config
    from lapis.sdk.workspace.workspace import Workspace

    named = workspace_config.read(file).workspace_name
    if name is not None and name != named:
        raise Conflict(f"{file} names workspace '{named}' already, not '{name}'. Remove that file to start anew.")
    return Workspace.from_config(file)


def _made(folder: str, name: str | None) -> Workspace:
    from lapis.errors import WorkspaceException
    from lapis.sdk.workspace.workspace import Workspace

    choice.use_configured_server()
    chosen = name if name is not None else _name_of(folder)
    try:
        workspace = Workspace.get(chosen)
    except WorkspaceException as error:
        if error.found_multiple:
            raise
        workspace = Workspace.create(chosen, show_output=False, exist_ok=True)
    workspace.write_config(folder)
    return workspace


def _name_of(folder: str) -> str:
    """The folder's name as far as a workspace may have it."""
    name = re.sub(r"[^a-zA-Z0-9_-]+", "-", os.path.basename(folder)).strip("-_")[:33]
    return name if len(name) > 1 else "default"
