"""Where streamed files come from: web addresses and object stores, each with the cache that downloads go to as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lapis.domain.data import File
from lapis.files.pieces import Chunk
from lapis.files.web_cache import Said, WebCache
from lapis.object_stores.cache import ObjectCache
from lapis.object_stores.stores import Object, ObjectStore


class Web:
    def __init__(self, cache: WebCache) -> None:
        self._cache = cache

    def whole(self, file: File) -> str:
        return self._cache.place(file.place, _said(file))

    def is_whole(self, file: File) -> bool:
        return self._cache.has(file.place, _said(file))

    def fetch(self, file: File, begin: int, end: int) -> Iterable[Chunk]:
        return self._cache.read(file.place, _said(file), begin, end)

    def clear(self) -> None:
        self._cache.clear()


class Objects:
    """`access` gives the view of each datastore with its credentials."""

    def __init__(self, cache: ObjectCache, access: Mapping[str, Mapping[str, Any]]) -> None:
        self._cache = cache
        self._stores = {name: ObjectStore(each) for name, each in access.items()}

    def whole(self, file: File) -> str:
        return self._cache.place(*self._found(file))

    def is_whole(self, file: File) -> bool:
        return self._cache.has(*self._found(file))

    def fetch(self, file: File, begin: int, end: int) -> Iterable[Chunk]:
        store, wanted = self._found(file)
        return [store.read_part(wanted, begin, end)]

    def clear(self) -> None:
        self._cache.clear()

    def _found(self, file: File) -> tuple[ObjectStore, Object]:
        name, _, key = file.place.partition("/")
        return self._stores[name], Object(key, file.size or 0, file.mark or "")


def _said(file: File) -> Said:
    return Said(file.size, file.mark, ranges=True)
