"""A run that begins anew on other nodes: its log goes on where it stopped, its outputs are back in place."""

from __future__ import annotations

import os

from lapis.client.fetching import fetch, fetch_run_file
from lapis.client.http_client import Client, quoted
from lapis.domain.launch import Launch, Place, Work
from lapis.domain.tree import resolve_under
from lapis.errors import NotFound


def bring_back(launch: Launch, name: str, log: str, client: Client) -> None:
    """A log as far as it had come, so that positions go on."""
    if not launch.attempt or os.path.exists(log):
        return
    try:
        fetch(client, f"{_files(launch, launch.run_id)}/{quoted(name)}", log, None, f"'{name}'")
    except NotFound:  # the last attempt did not come so far
        return
    with open(log, "a") as file:
        file.write(f"Lapis: a node was taken away; this is attempt {launch.attempt + 1}\n")


def restore_outputs(launch: Launch, place: Place, code: str, client: Client) -> None:
    if not launch.attempt or place.index:
        return
    _fetch_outputs(client, _files(launch, launch.run_id), os.path.join(code, "outputs"))


def go_on_from(work: Work, folder: str, client: Client) -> dict[str, str]:
    """The outputs of the run that this one goes on with, and the variable that says where: as SDK v1 calls it."""
    if work.job.resumes is None:
        return {}
    place = os.path.join(folder, "resume-from")
    os.makedirs(place, exist_ok=True)
    _fetch_outputs(client, _files(work.launch, work.job.resumes), place)
    return {"AZUREML_DATAREFERENCE_MODEL_LOCATION": place}


def _files(launch: Launch, run_id: str) -> str:
    return f"/workspaces/{launch.workspace.id}/runs/{run_id}/files"


def _fetch_outputs(client: Client, files: str, folder: str) -> None:
    for file in client.call("GET", files)["files"]:
        name = file["name"]
        if name.startswith("outputs/"):
            target = resolve_under(folder, name[len("outputs/") :])
            fetch_run_file(client, f"{files}/{quoted(name)}", target, file, f"'{name}'")
