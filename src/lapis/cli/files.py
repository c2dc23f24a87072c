"""Commands about the files of a run: files, download."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from lapis.cli import choice, progress, screen
from lapis.cli.options import Json, RunId, WorkspaceName
from lapis.domain import in_words


def list_files(run_id: RunId, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """List the files of a run: its outputs and its logs."""
    from lapis.sdk.base.display import when

    run = choice.run(run_id, workspace)
    found = run._files()
    rows = [
        {"name": f["name"], "size": f["size"], "hash": f["hash"], "created_at": when(f["created_at"])} for f in found
    ]

    def show() -> None:
        if not found:
            screen.notice(f"Run {run.id} has no files.")
            return
        screen.table(
            ["FILE", "SIZE", "CREATED"],
            [(f["name"], in_words.size(f["size"]), screen.ago(f["created_at"])) for f in found],
            right=["SIZE"],
        )

    screen.answer({"id": run.id, "files": rows}, show)


def download(
    run_id: RunId,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only files whose names begin so: outputs/")] = "",
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Where to; ./RUN_ID by default.")
    ] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Write the files of a run to a folder. Every file is checked, and replaces one of the same name."""
    from lapis.domain.tree import resolve_under
    from lapis.errors import NotFound, UserErrorException

    run = choice.run(run_id, workspace)
    known = run._files()
    chosen = [file for file in known if file["name"].startswith(prefix)]
    if prefix and not chosen:
        names = ", ".join(file["name"] for file in known[:10]) or "none"
        raise NotFound(f"Run {run.id} has no file whose name begins with '{prefix}'. It has: {names}.")
    root = os.path.abspath(output if output is not None else run.id)
    total = sum(file["size"] for file in chosen)
    targets = [resolve_under(root, file["name"]) for file in chosen]
    try:
        with progress.shown("Downloading", total) as bar:
            for file, target in zip(chosen, targets, strict=True):
                run._fetch(file, target, bar.add)
    except OSError as error:
        raise UserErrorException(f"{error.filename or root} cannot be written ({error.strerror}).") from error
    count = len(chosen)
    screen.answer(
        {"id": run.id, "folder": root, "files": targets, "total_size": total},
        lambda: print(f"{count} {'file' if count == 1 else 'files'}, {in_words.size(total)}, in {root}"),
    )
