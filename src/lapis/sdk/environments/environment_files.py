"""Files that environments need and no package index has: wheels of one's own, folders with a Dockerfile.

They are kept in the workspace's own storage below the hash of their content, so what an environment was built from
never changes under it.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

from lapis.errors import Conflict, UserErrorException

_WHEELS, _CONTEXTS = "azureml-private-packages", "azureml-docker-contexts"
_STORE = "workspaceblobstore"  # a folder of the server, whatever the default datastore is


def add_wheel(workspace: Any, file_path: Any, exist_ok: bool) -> str:
    """Keep a wheel in the workspace; the address that pip takes it from."""
    path = os.path.abspath(os.fspath(file_path))
    name = os.path.basename(path)
    if not os.path.isfile(path):
        raise UserErrorException(f"There is no wheel {path}.")
    if not name.endswith(".whl") or len(name.split("-")) not in (5, 6):
        raise UserErrorException(
            f"Pip would refuse {name}: a wheel is named <package>-<version>-<python>-<abi>-<platform>.whl."
        )
    store = _store(workspace)
    place = f"{_WHEELS}/{_hash([(path, name)])}"
    there = [each for each in _folders(store, _WHEELS) if os.path.exists(os.path.join(each, name))]
    if there and not exist_ok:
        raise Conflict(f"Workspace '{workspace.name}' has a wheel {name} already. Pass exist_ok=True to use it again.")
    store.upload_files([path], target_path=place, show_progress=False)
    return _address(store, f"{place}/{name}")


def add_docker_context(workspace: Any, path: Any, dockerfile_path: str) -> str:
    """Keep a folder with a Dockerfile in the workspace; its address."""
    from lapis.files.copying import files_below, refuse_other

    folder = os.path.abspath(os.fspath(path))
    if not os.path.isdir(folder):
        raise UserErrorException(f"There is no folder {folder} to build an image from.")
    if not os.path.isfile(os.path.join(folder, dockerfile_path)):
        raise UserErrorException(f"There is no {dockerfile_path} in {folder}. Say which file it is: dockerfile_path.")
    store = _store(workspace)
    place = f"{_CONTEXTS}/{_hash(files_below(folder, other=refuse_other))}"
    store.upload(folder, place, show_progress=False)
    return _address(store, place)


def _store(workspace: Any) -> Any:
    from lapis.sdk.data.datastore import Datastore

    return Datastore(workspace, _STORE)


def _folders(store: Any, below: str) -> list[str]:
    root = os.path.join(store._root(), below)
    return [os.path.join(root, name) for name in os.listdir(root)] if os.path.isdir(root) else []


def _hash(files: Any) -> str:
    digest = hashlib.sha256()
    for path, name in files:
        with open(path, "rb") as file:
            content = hashlib.sha256()
            for chunk in iter(lambda: file.read(1 << 20), b""):  # noqa: B023  # read up before the next file
                content.update(chunk)
        digest.update(f"{content.hexdigest()} {name}\n".encode())
    return digest.hexdigest()[:32]


def _address(store: Any, path: str) -> str:
    from pathlib import Path

    return Path(os.path.realpath(store._root()), path).as_uri()
