"""Finds the files that a dataset's sources stand for: in datastores, in folders of this machine, on the web."""

from __future__ import annotations

import os
import posixpath
from typing import Any, Callable, Iterable, Mapping

from lapis.domain.data import LOCAL, STORE, WEB, File, apply_steps, fixed_part, glob_matcher, has_glob, web_path
from lapis.domain.tree import check_path
from lapis.errors import UserErrorException

FolderOf = Callable[[str], str]  # the folder of a datastore, by its name


def resolve(definition: Mapping[str, Any], folder_of: FolderOf) -> list[File]:
    """The files of a dataset, in the order of its sources, then by name."""
    files: list[File] = []
    for source in definition["sources"]:
        if source["kind"] == WEB:
            files.append(File(web_path(source["url"]), WEB, source["url"]))
        else:
            files.extend(_on_disk(*_place(source, folder_of), _describe(source)))
    return apply_steps(_relative_to_common(files), definition.get("steps", []))


def _place(source: Mapping[str, Any], folder_of: FolderOf) -> tuple[str, str]:
    """The root to search below, and the pattern."""
    if source["kind"] == STORE:
        return folder_of(source["datastore"]), source["path"]
    if source["kind"] == LOCAL:
        return os.path.splitdrive(source["path"])[0] + os.sep, source["path"].lstrip("/")
    raise UserErrorException(f"A source of kind {source['kind']!r} is not known to this release of Lapis.")


def _describe(source: Mapping[str, Any]) -> str:
    if source["kind"] == STORE:
        return f"'{source['path']}' of datastore '{source['datastore']}'"
    return f"'{source['path']}'"


def _on_disk(root: str, pattern: str, what: str) -> Iterable[File]:
    pattern = pattern.strip("/")
    if pattern and not has_glob(pattern):
        check_path(pattern)
        path = os.path.join(root, pattern)
        if os.path.isfile(path):
            return [_file(path, "/" + pattern)]
        if not os.path.isdir(path):
            raise UserErrorException(f"There is no file or folder {what}.")
        pattern += "/**"
    start = os.path.join(root, fixed_part(pattern))
    if not os.path.isdir(start):
        raise UserErrorException(f"There is no folder {what}: {fixed_part(pattern) or '/'} is not there.")
    matches = glob_matcher(pattern or "**").match
    found = []
    for where, folders, names in os.walk(start):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            inside = os.path.relpath(path, root).replace(os.sep, "/")
            if matches(inside) and os.path.isfile(path):
                found.append(_file(path, "/" + inside))
    if not found:
        raise UserErrorException(f"No file matches {what}.")
    return found


def _file(path: str, name: str) -> File:
    status = os.stat(path)
    return File(name, LOCAL, path, status.st_size, str(status.st_mtime_ns))


def _relative_to_common(files: list[File]) -> list[File]:
    """Names on disk are given relative to the deepest folder that holds them all; web names stay whole."""
    folders = [file.path.rsplit("/", 1)[0] or "/" for file in files if file.kind == LOCAL]
    if not folders:
        return files
    common = posixpath.commonpath(folders).rstrip("/")
    return [file if file.kind != LOCAL else file._replace(path=file.path[len(common) :]) for file in files]
