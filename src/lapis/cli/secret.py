"""Commands about the secrets of a workspace: secret set, list, delete."""

from __future__ import annotations

from typing import Annotated

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName, given_secret

Name = Annotated[str, typer.Argument(metavar="NAME", help="The secret's name: letters, digits and dashes.")]


def set_secret(
    name: Name,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read the value from a file; without it, it is asked for.")
    ] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Keep a secret in the workspace's key vault. One of that name that is there gets the new value.

    The value is asked for, or read from standard input where that is no terminal. One line end at its end is left out.
    """
    from lapis.domain.keyvault import check_secret_name

    check_secret_name(name)
    value = given_secret(f"Value of {name}: ", file)
    ws = choice.workspace(workspace)
    ws.get_default_keyvault().set_secret(name, value[:-1] if value.endswith("\n") else value)
    screen.answer({"name": name, "workspace": ws.name}, lambda: print(f"Secret '{name}' is kept."))


def list_secrets(workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """List the names of the secrets in the workspace's key vault."""
    ws = choice.workspace(workspace)
    names = [each["name"] for each in ws.get_default_keyvault().list_secrets()]

    def show() -> None:
        if not names:
            screen.notice(f"No secrets in workspace '{ws.name}' yet. `lapis secret set NAME` keeps one.")
        screen.table(["SECRET"], [(name,) for name in names])

    screen.answer({"secrets": [{"name": name} for name in names]}, show)


def delete(name: Name, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Remove a secret from the workspace's key vault."""
    from lapis.errors import NotFound

    vault = choice.workspace(workspace).get_default_keyvault()
    if name not in [each["name"] for each in vault.list_secrets()]:
        raise NotFound(f"There is no secret '{name}' in workspace '{vault.workspace.name}'.")
    vault.delete_secret(name)
    screen.answer({"deleted": name}, lambda: print(f"Secret '{name}' is deleted."))
