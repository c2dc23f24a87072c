"""A datastore that lies in an object store: finds its files, fetches and stores them, with credentials asked for late.

What is done is written down as an errand, a plain value. Here it is done in this process, by packages of the user's
environment; an agent, which has none, hands the same errands to a helper.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Mapping, Sequence

from lapis.domain import settings as settings_module
from lapis.domain.data import OBJECT, File
from lapis.errors import UserErrorException

Errand = Callable[[Mapping[str, Any]], Any]


class ObjectPlace:
    def __init__(self, name: str, access: Callable[[], Mapping[str, Any]], errand: Errand) -> None:
        self.name = name
        self._access = access
        self._errand = errand

    def find(self, pattern: str) -> list[File]:
        """What a path or a pattern stands for: one file, all below a folder, or those that match."""
        return [self._file(*row) for row in self._do("find", pattern=pattern)]

    def bring(self, wanted: Sequence[tuple[File, str]], copy: bool) -> None:
        """Put each file at its place: a link to the copy that all runs share, or with `copy` one of its own."""
        if wanted:
            rows = [[[file.place.partition("/")[2], file.size, file.mark], place] for file, place in wanted]
            self._do("bring", wanted=rows, copy=copy, cache=cache_folder())

    def put(self, files: Sequence[tuple[str, str]], overwrite: bool) -> int:
        """Store each file, given as (path, name); how many were not there already, or were replaced."""
        return int(self._do("put", files=list(files), overwrite=overwrite)) if files else 0

    def _do(self, errand: str, **more: Any) -> Any:
        return self._errand(dict(more, do=errand, store=dict(self._access())))

    def _file(self, key: str, size: int, mark: str, modified: float | None) -> File:
        return File("/" + key, OBJECT, f"{self.name}/{key}", size, mark, modified, modified)


def place_of(workspace: Any, name: str, show: bool = False) -> ObjectPlace:
    """As this process uses it. With `show`, how far it is stands on stderr."""

    def access() -> Any:
        return workspace._client.call("GET", workspace._base + "/datastore/access", query={"name": name})

    return ObjectPlace(name, access, lambda request: _here(request, show))


def bring_all(wanted: Sequence[tuple[File, str]], copy: bool, place_of: Callable[[str], ObjectPlace]) -> None:
    """Put files of any number of datastores at their places."""
    by_store: dict[str, list[tuple[File, str]]] = {}
    for file, place in wanted:
        by_store.setdefault(file.place.partition("/")[0], []).append((file, place))
    for name, files in by_store.items():
        place_of(name).bring(files, copy)


def bringer(workspace: Any) -> Callable[[Sequence[tuple[File, str]], bool], None]:
    """What fetches files of a workspace's datastores for this process."""
    return lambda wanted, copy: bring_all(wanted, copy, lambda name: place_of(workspace, name))


def cache_folder() -> str:
    return os.path.join(settings_module.home(), "cache", "objects")


def _here(request: Mapping[str, Any], show: bool) -> Any:
    if sys.version_info < (3, 9):
        raise UserErrorException(
            f"Datastore '{request['store']['name']}' lies in an object store, which this Python "
            f"({sys.version.split()[0]}) cannot read. In a run, as_mount() and as_download() bring its files."
        )
    from lapis.data.fetch import do

    def progress(done: int, files: int, size: int) -> None:
        if show:
            print(f"{done} of {files} files, {size / 1e6:.1f} MB", file=sys.stderr)

    return do(request, progress)
