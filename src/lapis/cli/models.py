"""Commands about registered models: list, export."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName
from lapis.domain import in_words


class Format(StrEnum):
    ONNX = "onnx"


def list_models(workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """List the registered models, the newest version of each."""
    from lapis.sdk.models.model import Model

    found = Model.list(choice.workspace(workspace), latest=True)

    def show() -> None:
        if not found:
            screen.notice("No model is registered yet.")
            return
        screen.table(
            ["NAME", "VERSION", "FRAMEWORK", "SIZE", "CREATED", "FROM RUN"],
            [
                (
                    each.name,
                    str(each.version),
                    " ".join(filter(None, [each.model_framework, each.model_framework_version])) or "-",
                    in_words.size(sum(file["size"] for file in each._view["files"])),
                    screen.ago(each._view["created_at"]),
                    each.run_id or "-",
                )
                for each in found
            ],
            right=["VERSION", "SIZE"],
        )

    screen.answer({"models": [each.serialize() for each in found]}, show)


def export(
    name: Annotated[str, typer.Argument(metavar="NAME[:VERSION]", help="The model; its newest version by default.")],
    form: Annotated[Format, typer.Option("--format", help="What to make of it.")] = Format.ONNX,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; ./NAME.onnx by default.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(metavar="FILE", help='A request body to compare the answers on: {"data": [...]}.')
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Make an ONNX file of a TensorFlow or Keras model, in the environment of its own TensorFlow."""
    from lapis.errors import UserErrorException
    from lapis.sdk.models.model import Model

    if sample is not None and not os.path.isfile(sample):
        raise UserErrorException(f"There is no file '{sample}' to take as a sample.")
    base, colon, version = name.rpartition(":")
    chosen = {"id": name} if colon and version.isdigit() and base else {"name": name}
    model = Model(choice.workspace(workspace), **chosen)  # type: ignore[arg-type]
    screen.notice(f"Exporting {model.id}; a run does it, which may have to install TensorFlow first.")
    path = model.export_onnx(output, sample_input=sample, overwrite=force, show_output=not screen.wants_json())
    size = os.path.getsize(path)

    def show() -> None:
        typer.echo(f"{path} ({in_words.size(size)})")

    screen.answer({"model": model.id, "file": os.path.abspath(path), "size": size}, show)
