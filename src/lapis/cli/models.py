"""Commands about registered models: list, show, register, download, export."""

from __future__ import annotations

import contextlib
import os
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName, labels
from lapis.cli.workspaces import tags_text
from lapis.domain import in_words

ModelName = Annotated[str, typer.Argument(metavar="NAME[:VERSION]", help="The model; its newest version by default.")]


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


def show(name: ModelName, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Show a model: where it came from, its files, its tags."""
    model = _model(name, workspace)
    files = model._view["files"]
    facts = [
        ("Model", model.id),
        ("Description", model.description or ""),
        ("Framework", " ".join(filter(None, [model.model_framework, model.model_framework_version]))),
        ("From run", model.run_id or ""),
        ("Experiment", model.experiment_name or ""),
        ("Tags", tags_text(model.tags)),
        ("Properties", tags_text(model.properties)),
        ("Created", screen.moment(model._view["created_at"])),
    ]

    def tell() -> None:
        screen.facts(facts)
        print()
        screen.table(["FILE", "SIZE"], [(each["path"], in_words.size(each["size"])) for each in files], right=["SIZE"])

    screen.answer({**model.serialize(), "files": files}, tell)


def register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is to be called.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or folder here, or of the run.")],
    run_id: Annotated[
        str | None, typer.Option("--run", metavar="RUN_ID", help="Take the files of this run: outputs/model.pkl.")
    ] = None,
    framework: Annotated[str | None, typer.Option(metavar="NAME", help="ScikitLearn, TensorFlow, ...")] = None,
    framework_version: Annotated[str | None, typer.Option(metavar="TEXT", help="Its version.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A tag. Repeat it for more.")] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is.")] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Make a file or a folder the next version of a model."""
    from lapis.sdk.models.model import Model, register_from_run

    ws, tags = choice.workspace(workspace), labels(tag, "--tag")
    about: dict[str, Any] = {"tags": tags, "description": description, "model_framework": framework,
             "model_framework_version": framework_version}  # fmt: skip
    if run_id is not None:
        rest = ("properties", "datasets", "sample_input_dataset", "sample_output_dataset", "resource_configuration")
        model = register_from_run(choice.run_of(ws, run_id), name, path, {**about, **dict.fromkeys(rest)})
    else:
        with contextlib.redirect_stdout(sys.stderr):  # it says that it registers
            model = Model.register(ws, model_path=path, model_name=name, **about)
    screen.answer(model.serialize(), lambda: print(f"Registered model {model.id}."))


def download(
    name: ModelName,
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where to.")] = ".",
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Write the files of a model to a folder."""
    model = _model(name, workspace)
    path = model.download(output, exist_ok=force)
    screen.answer({"model": model.id, "path": os.path.abspath(path)}, lambda: print(path))


def export(
    name: ModelName,
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

    if sample is not None and not os.path.isfile(sample):
        raise UserErrorException(f"There is no file '{sample}' to take as a sample.")
    model = _model(name, workspace)
    screen.notice(f"Exporting {model.id}; a run does it, which may have to install TensorFlow first.")
    path = model.export_onnx(output, sample_input=sample, overwrite=force, show_output=not screen.wants_json())
    size = os.path.getsize(path)

    def show() -> None:
        typer.echo(f"{path} ({in_words.size(size)})")

    screen.answer({"model": model.id, "file": os.path.abspath(path), "size": size}, show)


def _model(name: str, workspace: str | None) -> Any:
    from lapis.sdk.models.model import Model

    base, colon, version = name.rpartition(":")
    chosen: dict[str, Any] = {"id": name} if colon and version.isdigit() and base else {"name": name}
    return Model(choice.workspace(workspace), **chosen)
