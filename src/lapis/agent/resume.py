"""A run that begins anew on other nodes: its log goes on where it stopped, its outputs are back in place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lapis.client.http_client import Client, quoted
from lapis.errors import NotFound


def bring_back(job: Mapping[str, Any], name: str, log: str, client: Client) -> None:
    """A log as far as it had come, so that positions go on."""
    if not job.get("attempt") or os.path.exists(log):
        return
    try:
        _download(client, _files(job), name, log)
    except NotFound:  # the last attempt did not come so far
        return
    with open(log, "a") as file:
        file.write(f"Lapis: a node was taken away; this is attempt {int(job['attempt']) + 1}\n")


def restore_outputs(job: Mapping[str, Any], code: str, client: Client) -> None:
    node = job.get("node") or {}
    if not job.get("attempt") or node.get("index"):
        return
    for name in client.call("GET", _files(job))["files"]:
        name = name["name"] if isinstance(name, dict) else name
        if name.startswith("outputs/"):
            _download(client, _files(job), name, os.path.join(code, *name.split("/")))


def go_on_from(job: Mapping[str, Any], folder: str, client: Client) -> dict[str, str]:
    """The outputs of the run that this one goes on with, and the variable that says where: as SDK v1 calls it."""
    if not job.get("resumes"):
        return {}
    place = os.path.join(folder, "resume-from")
    earlier = _files({**job, "run_id": job["resumes"]})
    os.makedirs(place, exist_ok=True)
    for file in client.call("GET", earlier)["files"]:
        if file["name"].startswith("outputs/"):
            _download(client, earlier, file["name"], os.path.join(place, *file["name"].split("/")[1:]))
    return {"AZUREML_DATAREFERENCE_MODEL_LOCATION": place}


def _files(job: Mapping[str, Any]) -> str:
    return f"/workspaces/{job['workspace']['id']}/runs/{job['run_id']}/files"


def _download(client: Client, files: str, name: str, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        client.download(f"{files}/{quoted(name)}", file.write)
