"""Moves many objects at once between a store and this machine, and says how far it is."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from lapis.object_stores.cache import ObjectCache
from lapis.object_stores.stores import Object, ObjectStore

AT_ONCE = 16  # objects
SAY_EVERY = 1.0  # seconds
CLEAR_EVERY = 1 << 30  # bytes

Say = Callable[[int, int, int], None]  # files done, files in all, bytes so far


def bring_all(
    store: ObjectStore, wanted: Sequence[tuple[Object, str]], cache: ObjectCache, copy: bool, say: Say
) -> list[Object]:
    """Put each object at its place; what each was then. The first failure stops the rest."""
    progress = _Progress(len(wanted), say)
    cleared = 0

    def bring(each: tuple[Object, str]) -> Object:
        nonlocal cleared
        brought = cache.bring(store, each[0], each[1], copy, progress.came)
        progress.finished()
        if progress.bytes - cleared > CLEAR_EVERY:
            cleared = progress.bytes
            cache.clear()
        return brought

    done = _all([partial(bring, each) for each in wanted])
    cache.clear()
    return done


def put_all(store: ObjectStore, files: Sequence[tuple[str, str]], overwrite: bool, say: Say) -> int:
    """Store each file, given as (path, key); how many were not there already."""
    progress = _Progress(len(files), say)

    def put(path: str, key: str) -> bool:
        stored = store.put(path, key, overwrite)
        progress.came(os.path.getsize(path) if stored else 0)
        progress.finished()
        return stored

    return sum(_all([partial(put, path, key) for path, key in files]))


class _Progress:
    def __init__(self, files: int, say: Say) -> None:
        self.bytes, self._done, self._files, self._say = 0, 0, files, say
        self._lock, self._said = threading.Lock(), time.monotonic()

    def came(self, count: int) -> None:
        with self._lock:
            self.bytes += count
            self._tell(time.monotonic() - self._said > SAY_EVERY)

    def finished(self) -> None:
        with self._lock:
            self._done += 1
            self._tell(self._done == self._files)

    def _tell(self, due: bool) -> None:
        if due:
            self._said = time.monotonic()
            self._say(self._done, self._files, self.bytes)


def _all(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        futures: list[Future[Any]] = [threads.submit(task) for task in tasks]
        wait(futures, return_when=FIRST_EXCEPTION)
        for future in futures:
            future.cancel()
        return [future.result() for future in futures if not future.cancelled()]
