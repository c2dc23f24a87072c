"""Copies many files into a folder: each whole or not at all, with as few questions to the disk as will do."""

from __future__ import annotations

import contextlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Iterator, Sequence
from uuid import uuid4

from lapis.domain.tree import check_path, resolve_under
from lapis.errors import UserErrorException

_SMALL = 1 << 16
_THREADS = 2
_BATCH = 512
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)


def files_below(
    folder: str, inside: str = "", other: Callable[[str], None] = lambda path: None
) -> Iterator[tuple[str, str]]:
    """Every file's path and its name below `folder`, in order; only those `inside` a folder of it, if that is given.

    A link to a folder is not followed. What is neither file nor folder goes to `other`.
    """
    start = resolve_under(folder, inside) if inside else folder
    return _walk(start, f"{inside}/" if inside else "", other) if os.path.isdir(start) else iter(())


def refuse_other(path: str) -> None:
    raise UserErrorException(f"{path} is neither a file nor a folder, or a link that leads nowhere.")


def copy_files(wanted: Sequence[tuple[str, str]], root: str, overwrite: bool) -> int:
    """Copy each path to the name that comes with it below `root`; how many. What is there stays, unless `overwrite`."""
    folders = _Folders(root)
    planned = []
    for source, name in wanted:
        folder, _, leaf = check_path(name).rpartition("/")
        place, there = folders.find(folder)
        if overwrite or leaf not in there:
            planned.append((source, f"{place}/{leaf}"))
    folders.make()
    mark = f".{uuid4().hex[:8]}.part"
    batches = [planned[begin : begin + _BATCH] for begin in range(0, len(planned), _BATCH)]
    with ThreadPoolExecutor(_THREADS) as threads:
        under_way = [threads.submit(_copy_batch, batch, mark) for batch in batches]
        try:
            for each in under_way:
                each.result()
        except OSError as error:
            raise UserErrorException(f"Not all of {len(planned)} files could be copied to {root}: {error}.") from error
        finally:
            for each in under_way:
                each.cancel()
    return len(planned)


class _Folders:
    """The folders below a root that files go to: resolved once, listed once, made once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._found: dict[str, tuple[str, set[str]]] = {}

    def find(self, folder: str) -> tuple[str, set[str]]:
        """Its place, and the names that are in it."""
        if folder not in self._found:
            place = resolve_under(self._root, folder) if folder else os.path.realpath(self._root)
            try:
                self._found[folder] = place, set(os.listdir(place))
            except FileNotFoundError:
                self._found[folder] = place, set()
            except NotADirectoryError:
                raise UserErrorException(f"{place} is a file, not a folder. Nothing was copied.") from None
        return self._found[folder]

    def make(self) -> None:
        for place, _ in self._found.values():
            try:
                os.makedirs(place, exist_ok=True)
            except OSError as error:
                raise UserErrorException(f"The folder {place} cannot be made: {error}. Nothing was copied.") from error


def _walk(folder: str, above: str, other: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, f"{above}{entry.name}/", other)
        elif entry.is_file():
            yield entry.path, above + entry.name
        elif not entry.is_dir():
            other(entry.path)


def _copy_batch(batch: Sequence[tuple[str, str]], mark: str) -> None:
    buffer = memoryview(bytearray(_SMALL))  # one for all: making so large a one costs more than reading a small file
    for source, place in batch:
        part = place + mark
        try:
            _copy(source, part, buffer)
            os.replace(part, place)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.remove(part)
            raise


def _copy(source: str, place: str, buffer: memoryview) -> None:
    """A small file in one gulp; a large one as the system does it best."""
    reading = os.open(source, _READ)
    try:
        size = os.readv(reading, [buffer])
        if size < len(buffer):
            writing = os.open(place, _NEW, 0o666)
            try:
                if os.write(writing, buffer[:size]) == size:
                    return
            finally:
                os.close(writing)
    finally:
        os.close(reading)
    shutil.copyfile(source, place)
