"""A run that begins anew on other nodes: its log goes on where it stopped, its outputs are back in place."""

from __future__ import annotations

import os

from lapis.client.http_client import Client, quoted
from lapis.domain.launch import Launch, Place, Work
from lapis.errors import NotFound


def bring_back(launch: Launch, name: str, log: str, client: Client) -> None:
    """A log as far as it had come, so that positions go on."""
    if not launch.attempt or os.path.exists(log):
        return
    try:
        _download(client, _files(launch, launch.run_id), name, log)
    except NotFound:  # the last attempt did not come so far
        return
    with open(log, "a") as file:
        file.write(f"Lapis: a node was taken away; this is attempt {launch.attempt + 1}\n")


def restore_outputs(launch: Launch, place: Place, code: str, client: Client) -> None:
    if not launch.attempt or place.index:
        return
    mine = _files(launch, launch.run_id)
    for name in client.call("GET", mine)["files"]:
        name = name["name"] if isinstance(name, dict) else name
        if name.startswith("outputs/"):
            _download(client, mine, name, os.path.join(code, *name.split("/")))


def go_on_from(work: Work, folder: str, client: Client) -> dict[str, str]:
    """The outputs of the run that this one goes on with, and the variable that says where: as SDK v1 calls it."""
    if work.job.resumes is None:
        return {}
    place = os.path.join(folder, "resume-from")
    earlier = _files(work.launch, work.job.resumes)
    os.makedirs(place, exist_ok=True)
    for file in client.call("GET", earlier)["files"]:
        if file["name"].startswith("outputs/"):
            _download(client, earlier, file["name"], os.path.join(place, *file["name"].split("/")[1:]))
    return {"AZUREML_DATAREFERENCE_MODEL_LOCATION": place}


def _files(launch: Launch, run_id: str) -> str:
    return f"/workspaces/{launch.workspace.id}/runs/{run_id}/files"


def _download(client: Client, files: str, name: str, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        client.download(f"{files}/{quoted(name)}", file.write)
