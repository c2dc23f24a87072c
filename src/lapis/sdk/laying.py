"""Lays the files of a dataset under a folder: links to what is on this machine, copies or cached copies of the rest."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Sequence

from lapis.domain import settings as settings_module
from lapis.domain.data import WEB, File
from lapis.domain.tree import resolve_under
from lapis.sdk.web_cache import WebCache

_AT_ONCE = 8


def web_cache() -> WebCache:
    return WebCache(os.path.join(settings_module.home(), "cache", "web"), os.environ.get("LAPIS_URL_MIRRORS"))


def lay_out_files(
    files: Sequence[File], target: str, copy: bool = False, say: Callable[[str], None] = lambda text: None
) -> list[str]:
    """Put every file at `target` + its path; the paths. With `copy` they may be changed without harm."""
    cache = web_cache()
    places = [resolve_under(target, file.path.lstrip("/")) for file in files]

    def lay(file: File, place: str) -> None:
        source = file.place
        if file.kind == WEB:
            source = cache.fetch(file.place)
            say(f"{file.place}: {os.path.getsize(source)} bytes are here")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.lexists(place):
            os.remove(place)
        if copy:
            shutil.copyfile(source, place)
        elif file.kind == WEB:
            _link_or_copy(source, place)  # a link of its own: the cache may be cleared meanwhile
        else:
            os.symlink(source, place)

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for done in [threads.submit(lay, file, place) for file, place in zip(files, places)]:
            done.result()
    return places


def _link_or_copy(source: str, place: str) -> None:
    try:
        os.link(source, place)
    except OSError:  # another file system
        shutil.copyfile(source, place)
