"""Lays the files of a dataset under a folder: links to what is on this machine, copies or cached copies of the rest."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Sequence, Tuple
from uuid import uuid4

from lapis.domain import settings as settings_module
from lapis.domain.data import OBJECT, WEB, File, shown_url
from lapis.domain.tree import check_path, resolve_under
from lapis.errors import NotFound, UserErrorException
from lapis.files import shared_files
from lapis.files.web_cache import Said, WebCache
from lapis.machine import cloning
from lapis.machine.threads import do_all

_AT_ONCE = 16
_SAY_EVERY = 2.0  # seconds between two lines about one download

Say = Callable[[str], None]
Bring = Callable[[Sequence[Tuple[File, str]], bool], None]  # fetch files of object stores to places; as copies or links


def web_cache() -> WebCache:
    return WebCache(os.path.join(settings_module.home(), "cache", "web"), os.environ.get("LAPIS_URL_MIRRORS"))


def describe_all(files: Sequence[File]) -> list[File]:
    """The files with size and mark of those on the web, as they are now; an error for one that cannot be read."""
    cache = web_cache()

    def describe(file: File) -> File:
        if file.kind != WEB:
            return file
        said = cache.describe(file.place)
        return file._replace(size=said.size, mark=said.mark, modified=said.modified, created=said.modified)

    if all(file.kind != WEB for file in files):
        return list(files)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(describe, files))


def lay_out_files(
    files: Sequence[File],
    target: str,
    copy: bool = False,
    replace: bool = True,
    ignore_not_found: bool = False,
    say: Say = lambda text: None,
    bring: Bring | None = None,
) -> list[str]:
    """Put every file at `target` + its path, all of them or none; the paths. With `copy` they may be changed.

    Without `replace`, what is there already and is not the same file is an error.
    """
    places = _places(files, target)
    cache, new = web_cache(), not os.path.isdir(target)
    os.makedirs(target, exist_ok=True)
    staging = os.path.join(target, ".lapis-" + uuid4().hex[:12])

    def stage(number: int, file: File) -> None:
        staged = os.path.join(staging, str(number))
        try:
            _put(file, staged, cache, copy, say)
            if not replace and os.path.lexists(places[number]) and not _same(staged, places[number]):
                raise UserErrorException(f"{places[number]} exists already, and is another file. Nothing was changed.")
        except NotFound:
            if not ignore_not_found:
                raise
        except OSError as error:
            where = shown_url(file.place)
            raise UserErrorException(f"File {file.path} ({where}) cannot be laid out: {error}") from error

    try:
        os.mkdir(staging)
        objects = [(f, os.path.join(staging, str(number))) for number, f in enumerate(files) if f.kind == OBJECT]
        if objects:
            if bring is None:
                raise UserErrorException(f"{objects[0][0].place} lies in an object store, which nothing reads here.")
            bring(objects, copy)
        _each(files, stage)
        laid = []
        for number, place in enumerate(places):
            staged = os.path.join(staging, str(number))
            if os.path.lexists(staged):
                os.makedirs(os.path.dirname(place), exist_ok=True)
                os.replace(staged, place)
                laid.append(place)
        return laid
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if new:
            with contextlib.suppress(OSError):
                os.rmdir(target)  # nothing came of it


def remove_laid(places: Sequence[str], target: str) -> None:
    """Take away what was laid, and the folders that are empty then. Whatever else lies there stays."""
    for place in places:
        with contextlib.suppress(FileNotFoundError):
            os.remove(place)
    for where, _, _ in os.walk(target, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(where)


def _places(files: Sequence[File], target: str) -> list[str]:
    """Where each goes. Links on the way must not lead out; the file itself may be a link of ours, to be replaced."""
    folders: dict[str, str] = {"": os.path.realpath(target)}
    places = []
    for file in files:
        folder, _, name = check_path(file.path.lstrip("/")).rpartition("/")
        if folder not in folders:
            folders[folder] = resolve_under(target, folder)
        places.append(os.path.join(folders[folder], name))
    return places


def _each(files: Sequence[File], work: Callable[[int, File], None]) -> None:
    """Work on every file; several at once only where there is something to wait for."""
    if all(file.kind != WEB for file in files):
        for number, file in enumerate(files):
            work(number, file)
        return
    do_all(_AT_ONCE, work, enumerate(files))


def _put(file: File, place: str, cache: WebCache, copy: bool, say: Say) -> None:
    if file.kind == OBJECT:
        return  # it was brought
    if file.kind == WEB:
        said = Said(file.size, file.mark, ranges=True) if file.mark else None  # whoever chose how to bring it has asked
        with cache.holding(file.place, _progress(file, say), said) as source:
            say(f"{shown_url(file.place)}: {os.path.getsize(source)} bytes are here")
            if copy:
                cloning.copy(source, place)
            else:
                shared_files.lay(source, place)  # of its own: the cache may be cleared meanwhile
    elif copy:
        cloning.copy(file.place, place)
    else:
        os.symlink(file.place, place)


def _progress(file: File, say: Say) -> Callable[[int, int | None], None]:
    """A line now and then while a download lasts."""
    last, lock = [time.monotonic()], threading.Lock()

    def tell(done: int, total: int | None) -> None:
        with lock:
            if time.monotonic() - last[0] < _SAY_EVERY:
                return
            last[0] = time.monotonic()
        part = f" of {total / 1e6:.0f} MB ({done / total:.0%})" if total else " MB"
        say(f"{shown_url(file.place)}: {done / 1e6:.0f}{part}")

    return tell


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
