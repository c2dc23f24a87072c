"""Datastores in object stores as this process uses them: by packages of the user's environment."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from lapis.domain.data import File
from lapis.errors import UserErrorException
from lapis.files.object_store import ObjectPlace, bring_all
from lapis.files.streaming import Offered, folder_here, offer
from lapis.machine import mounts

if TYPE_CHECKING:
    from lapis.sdk.workspace.workspace import Workspace


def place_of(workspace: Any, name: str, show: bool = False) -> ObjectPlace:
    """As this process uses it. With `show`, how far it is stands on stderr."""

    def access() -> Any:
        return workspace._client.call("GET", workspace._base + "/datastore/access", query={"name": name})

    return ObjectPlace(name, access, lambda request: _here(request, show))


def bringer(workspace: Workspace | None) -> Callable[[Sequence[tuple[File, str]], bool], None]:
    """What fetches files of a workspace's datastores for this process."""
    return lambda wanted, copy: bring_all(wanted, copy, lambda name: place_of(workspace, name))


def stream_here(files: Sequence[File], workspace: Workspace | None) -> Offered:
    """For this process, which reads them itself; faults are told on stderr."""
    folder = folder_here()
    mounts.clear_below(folder)
    return offer(files, "the mount", folder, lambda store: place_of(workspace, store))


def _here(request: Mapping[str, Any], show: bool) -> Any:
    if sys.version_info < (3, 9):
        raise UserErrorException(
            f"Datastore '{request['store']['name']}' lies in an object store, which this Python "
            f"({sys.version.split()[0]}) cannot read. In a run, as_mount() and as_download() bring its files."
        )
    from lapis.object_stores.fetch import do  # late: fsspec is the user's to have

    def progress(done: int, files: int, size: int) -> None:
        if show:
            print(f"{done} of {files} files, {size / 1e6:.1f} MB", file=sys.stderr)

    return do(request, progress)
