"""Finds the files that a dataset's sources stand for: in datastores, in folders of this machine, on the web."""

from __future__ import annotations

import os
import posixpath
from typing import Any, Callable, Iterable, Mapping

from lapis.domain.conditions import columns_of
from lapis.domain.data import (
    FILE_FACTS,
    LOCAL,
    STORE,
    WEB,
    File,
    apply_steps,
    fixed_part,
    glob_matcher,
    has_glob,
    shown_url,
    web_path,
)
from lapis.domain.tree import check_path
from lapis.errors import NotFound, UserErrorException
from lapis.files import path_columns
from lapis.files.copying import files_below

FolderOf = Callable[[str], Any]  # by a datastore's name: its folder, or an ObjectPlace


def resolve(definition: Mapping[str, Any], folder_of: FolderOf) -> list[File]:
    """The files of a dataset, in the order of its sources, then by name."""
    files: list[File] = []
    bases: list[str] = []
    for source in definition["sources"]:
        if source["kind"] == WEB:
            files.append(File(web_path(source["url"]), WEB, source["url"]))
        else:
            root, pattern = _place(source, folder_of)
            base, found = (_on_disk if isinstance(root, str) else _in_objects)(root, pattern, _describe(source))
            bases.append(base)
            files.extend(found)
    return _chosen(_each_once(_relative_to_common(files, bases)), definition)


def _chosen(files: list[File], definition: Mapping[str, Any]) -> list[File]:
    """Those that the steps leave. The web is asked about its files only where a condition looks at their facts."""
    steps, layout = definition.get("steps", []), definition.get("partition_format")
    wanted = set().union(*(columns_of(step["condition"]) for step in steps if step["op"] == "filter"))
    facts = wanted & set(FILE_FACTS)
    if facts & {"file:Size", "file:LastModifiedTime", "file:CreationTime"}:
        from lapis.files.layout import describe_all

        files = describe_all(files)

    def values(file: File) -> dict[str, Any]:
        found = {name: FILE_FACTS[name](file) for name in facts}
        return found if wanted <= facts else dict(found, **path_columns.values(file, False, layout))

    return apply_steps(files, steps, values)


def _place(source: Mapping[str, Any], folder_of: FolderOf) -> tuple[Any, str]:
    """The root to search below, a folder or an ObjectPlace, and the pattern."""
    if source["kind"] == STORE:
        return folder_of(source["datastore"]), source["path"]
    if source["kind"] == LOCAL:
        return os.path.splitdrive(source["path"])[0] + os.sep, source["path"].lstrip("/")
    raise UserErrorException(f"A source of kind {source['kind']!r} is not known to this release of Lapis.")


def _describe(source: Mapping[str, Any]) -> str:
    if source["kind"] == STORE:
        return f"'{source['path']}' of datastore '{source['datastore']}'"
    return f"'{source['path']}'"


def _on_disk(root: str, pattern: str, what: str) -> tuple[str, Iterable[File]]:
    """The files, and the folder that their source begins in: a file's own, or the part before the first wildcard."""
    pattern = pattern.strip("/")
    if ".." in pattern.split("/"):
        raise UserErrorException(f"{what} cannot be looked for: '..' leads out of where it is.")
    path = os.path.join(root, pattern)
    if pattern and (not has_glob(pattern) or os.path.isfile(path)):  # a file may well be called `a[1].txt`
        check_path(pattern)
        if os.path.isfile(path):
            return os.path.dirname("/" + pattern), [_file(path, "/" + pattern)]
        if not os.path.isdir(path):
            raise NotFound(f"There is no file or folder {what}.")
        pattern += "/**"
    start = os.path.join(root, fixed_part(pattern))
    if not os.path.isdir(start):
        raise NotFound(f"There is no folder {what}: {fixed_part(pattern) or '/'} is not there.")
    matches = glob_matcher(pattern or "**").match
    inside = fixed_part(pattern or "**")
    found = [_file(path, "/" + name) for path, name in files_below(root, inside) if matches(name)]
    if not found:
        raise NotFound(f"No file matches {what}.")
    return "/" + inside, sorted(found)


def _in_objects(place: Any, pattern: str, what: str) -> tuple[str, Iterable[File]]:
    pattern = pattern.strip("/")
    found = place.find(pattern)
    if not found:
        raise NotFound(f"No file is or matches {what}.")
    if [file.path for file in found] == ["/" + pattern]:
        return os.path.dirname("/" + pattern), found
    return "/" + (fixed_part(pattern) if has_glob(pattern) else pattern), found


def _file(path: str, name: str) -> File:
    status = os.stat(path)
    created = getattr(status, "st_birthtime", status.st_ctime)
    return File(name, LOCAL, path, status.st_size, str(status.st_mtime_ns), status.st_mtime, created)


def _relative_to_common(files: list[File], bases: list[str]) -> list[File]:
    """Names on disk are given relative to the deepest folder that all sources begin in; web names stay whole."""
    if not bases:
        return files
    common = posixpath.commonpath(bases).rstrip("/")
    return [file if file.kind == WEB else file._replace(path=file.path[len(common) :]) for file in files]


def _each_once(files: list[File]) -> list[File]:
    """A file that two sources name counts once; two files of one name are an error, as one would hide the other."""
    seen: dict[str, File] = {}
    for file in files:
        other = seen.setdefault(file.path, file)
        if other.place != file.place:
            raise UserErrorException(
                f"Two files of the dataset have the name {file.path}: {shown_url(other.place)} and "
                f"{shown_url(file.place)}. Make a dataset of each."
            )
    return list(seen.values())
