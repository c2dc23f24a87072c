"""A datastore that lies in an object store: finds its files, fetches and stores them, with credentials asked for late.

What is done is written down as an errand, a plain value. The SDK has it done in its own process, by packages of the
user's environment; an agent, which has none, hands the same errands to a helper.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Sequence

from lapis.domain import settings as settings_module
from lapis.domain.data import OBJECT, File

Errand = Callable[[Mapping[str, Any]], Any]


class ObjectPlace:
    def __init__(self, name: str, access: Callable[[], Mapping[str, Any]], errand: Errand) -> None:
        self.name = name
        self.access = access  # with its credentials
        self._errand = errand

    def find(self, pattern: str) -> list[File]:
        """What a path or a pattern stands for: one file, all below a folder, or those that match."""
        return [self._file(*row) for row in self._do("find", pattern=pattern)]

    def bring(self, wanted: Sequence[tuple[File, str]], copy: bool) -> None:
        """Put each file at its place: a link to the copy that all runs share, or with `copy` one of its own."""
        if wanted:
            rows = [[_row(file), place] for file, place in wanted]
            self._do("bring", wanted=rows, copy=copy, cache=cache_folder())

    def missing(self, wanted: Sequence[File]) -> int:
        """Bytes of the files that the cache does not have whole."""
        return int(self._do("missing", wanted=[_row(file) for file in wanted], cache=cache_folder()))

    def put(self, files: Sequence[tuple[str, str]], overwrite: bool) -> int:
        """Store each file, given as (path, name); how many were not there already, or were replaced."""
        return int(self._do("put", files=list(files), overwrite=overwrite)) if files else 0

    def _do(self, errand: str, **more: Any) -> Any:
        return self._errand(dict(more, do=errand, store=dict(self.access())))

    def _file(self, key: str, size: int, mark: str, modified: float | None) -> File:
        return File("/" + key, OBJECT, f"{self.name}/{key}", size, mark, modified, modified)


def _row(file: File) -> list[Any]:
    return [file.place.partition("/")[2], file.size, file.mark]


def bring_all(wanted: Sequence[tuple[File, str]], copy: bool, place_of: Callable[[str], ObjectPlace]) -> None:
    """Put files of any number of datastores at their places."""
    by_store: dict[str, list[tuple[File, str]]] = {}
    for file, place in wanted:
        by_store.setdefault(datastore_of(file), []).append((file, place))
    for name, files in by_store.items():
        place_of(name).bring(files, copy)


def datastore_of(file: File) -> str:
    return file.place.partition("/")[0]


def cache_folder() -> str:
    return os.path.join(settings_module.home(), "cache", "objects")
