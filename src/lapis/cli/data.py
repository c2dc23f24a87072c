"""Commands about data: datasets and datastores."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from lapis.cli import choice, screen
from lapis.cli.options import Json, WorkspaceName
from lapis.cli.workspaces import tags_text

DatasetName = Annotated[str, typer.Argument(metavar="NAME[:VERSION]", help="The dataset; its newest version.")]
StoreName = Annotated[str, typer.Argument(metavar="NAME", help="The datastore.")]


def list_datasets(workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """List the registered datasets, the newest version of each."""
    found = list(choice.workspace(workspace).datasets.values())

    def show() -> None:
        if not found:
            screen.notice("No dataset is registered yet.")
            return
        screen.table(
            ["NAME", "VERSION", "TYPE", "SOURCE", "CREATED"],
            [(*_row(each), _sources(each), screen.ago(each._fact("created_at"))) for each in found],
            right=["VERSION"],
        )

    screen.answer({"datasets": [_about_dataset(each) for each in found]}, show)


def show_dataset(name: DatasetName, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Show a dataset: what it is made of, and which versions there are."""
    from lapis.sdk.data.dataset import Dataset

    base, colon, version = name.rpartition(":")
    chosen = (base, version) if colon and version.isdigit() else (name, "latest")
    dataset = Dataset.get_by_name(choice.workspace(workspace), *chosen)
    facts = [
        ("Dataset", f"{dataset.name}:{dataset.version}"),
        ("Type", type(dataset).__name__),
        ("Source", _sources(dataset)),
        ("Description", dataset.description or ""),
        ("Tags", tags_text(dataset.tags or {})),
        ("Created", screen.moment(dataset._fact("created_at"))),
    ]
    screen.answer(_about_dataset(dataset), lambda: screen.facts(facts))


def register_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is to be called.")],
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="DATASTORE:PATH, a path of this machine, or a web address.")
    ],
    table: Annotated[
        bool, typer.Option("--table", help="Rows of CSV, JSON lines or Parquet files, by their ending.")
    ] = False,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is.")] = None,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Register files, or rows of files, as the next version of a dataset."""
    from lapis.sdk.data.dataset import Dataset
    from lapis.sdk.data.datastore import Datastore

    ws = choice.workspace(workspace)
    store, colon, inside = path.partition(":")
    place: Any = (Datastore(ws, store), inside) if colon and not inside.startswith("//") else path
    ending = os.path.splitext(path)[1].lower()
    make = Dataset.File.from_files
    if table:
        readers = {
            ".parquet": "from_parquet_files",
            ".jsonl": "from_json_lines_files",
            ".json": "from_json_lines_files",
        }
        make = getattr(Dataset.Tabular, readers.get(ending, "from_delimited_files"))
    made = make(place).register(ws, name, description, create_new_version=True)
    screen.answer(_about_dataset(made), lambda: print(f"Registered dataset {made.name}:{made.version}."))


def list_datastores(workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """List the datastores of the workspace."""
    ws = choice.workspace(workspace)
    default = ws.get_default_datastore().name
    found = list(ws.datastores.values())

    def show() -> None:
        screen.table(
            ["NAME", "TYPE", "WHERE", "DEFAULT"],
            [(each.name, each.datastore_type, _where(each), "yes" if each.name == default else "") for each in found],
        )

    screen.answer({"datastores": [dict(_about_store(each), default=each.name == default) for each in found]}, show)


def show_datastore(name: StoreName, workspace: WorkspaceName = None, as_json: Json = False) -> None:
    """Show a datastore. Credentials are not shown."""
    store = _store(name, workspace)
    facts = [("Datastore", store.name), ("Type", store.datastore_type), ("Where", _where(store))]
    screen.answer(_about_store(store), lambda: screen.facts(facts))


def upload(
    name: StoreName,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or a folder of this machine.")],
    target: Annotated[str, typer.Option("--target", "-t", metavar="PATH", help="Where to in the datastore.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Copy a file or a folder to a datastore."""
    from lapis.errors import UserErrorException

    store = _store(name, workspace)
    if os.path.isdir(path):
        store.upload(path, target or None, overwrite=force, show_progress=False)
    elif os.path.isfile(path):
        store.upload_files([path], target_path=target or None, overwrite=force, show_progress=False)
    else:
        raise UserErrorException(f"There is no file or folder '{path}'.")
    place = f"{store.name}:{target}"
    screen.answer({"datastore": store.name, "path": target}, lambda: print(f"Uploaded {path} to {place}"))


def download(
    name: StoreName,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only what begins so.")] = "",
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where to.")] = ".",
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
    workspace: WorkspaceName = None,
    as_json: Json = False,
) -> None:
    """Copy the files of a datastore to a folder."""
    store = _store(name, workspace)
    count = store.download(output, prefix=prefix or None, overwrite=force, show_progress=False)
    folder = os.path.abspath(output)
    said = f"{count} {'file' if count == 1 else 'files'} in {folder}"
    screen.answer({"datastore": store.name, "folder": folder, "count": count}, lambda: print(said))


def _row(dataset: Any) -> tuple[str, str, str]:
    return str(dataset.name), str(dataset.version), type(dataset).__name__.replace("Dataset", "").lower()


def _about_dataset(dataset: Any) -> dict[str, Any]:
    from lapis.sdk.base.display import when

    return {
        "id": dataset.id,
        "name": dataset.name,
        "version": dataset.version,
        "type": type(dataset).__name__,
        "source": dataset._sources_in_words(),
        "description": dataset.description,
        "tags": dataset.tags,
        "created_at": when(dataset._fact("created_at")),
    }


def _sources(dataset: Any) -> str:
    return ", ".join(dataset._sources_in_words())


def _store(name: str, workspace: str | None) -> Any:
    from lapis.sdk.data.datastore import Datastore

    return Datastore(choice.workspace(workspace), name)


def _about_store(store: Any) -> dict[str, Any]:
    return {"name": store.name, "type": store.datastore_type, "where": _where(store)}


def _where(store: Any) -> str:
    view = getattr(store, "_view", {})
    return str(view.get("folder") or view.get("url") or getattr(store, "server_name", "") or "")
