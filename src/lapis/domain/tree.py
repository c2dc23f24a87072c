"""A tree of content-addressed files, as all that is stored is kept, and the one check of relative names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from lapis.domain.limits import FILES_OF_SNAPSHOT, check_count
from lapis.errors import UserErrorException

MAX_PATH_LENGTH = 1024


class TreeEntry(NamedTuple):
    """One file: where it lies in the tree, the SHA-256 of its content, its size in bytes."""

    path: str
    hash: str
    size: int
    executable: bool = False


class Tree:
    """Files by path, each name checked and used once. Two trees with the same files have the same `id`."""

    def __init__(self, entries: Iterable[TreeEntry]) -> None:
        self.entries = tuple(sorted(entries, key=attrgetter("path")))
        _check_entries(self.entries)
        self._id: str | None = None

    @classmethod
    def of_folder(cls, entries: Iterable[TreeEntry]) -> Tree:
        """As it was found on a disk, where no two files have one name, with names that were checked there."""
        made = cls(())
        made.entries = tuple(sorted(entries, key=attrgetter("path")))
        return made

    @property
    def id(self) -> str:
        if self._id is None:
            # A path is the last field and holds no newline, so no two trees share a text.
            lines = (f"{e.hash} {e.size} {'x' if e.executable else '-'} {e.path}\n" for e in self.entries)
            self._id = hashlib.sha256("".join(lines).encode()).hexdigest()
        return self._id

    @property
    def total_size(self) -> int:
        return sum(entry.size for entry in self.entries)

    def to_json(self) -> list[list[Any]]:
        """Rows `[path, hash, size, executable]`, sorted by path."""
        return [list(entry) for entry in self.entries]

    @classmethod
    def from_json(cls, rows: Any) -> Tree:
        """The tree of such rows in any order, wherever they came from: everything about them is checked."""
        if not isinstance(rows, list):
            raise UserErrorException("A tree is a list of rows [path, hash, size, executable].")
        check_count("A tree", rows, FILES_OF_SNAPSHOT, "files")
        return cls(_entry(row) for row in rows)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[TreeEntry]:
        return iter(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Tree({len(self.entries)} files, {self.total_size} bytes)"


def check_path(path: str) -> str:
    """Return `path` if it is a plain relative name with `/`, else raise UserErrorException.

    Nothing is decoded or normalised: `%2e%2e` is a name like any other, and so is a dot of another alphabet.
    """
    fault = _fault(path)
    if fault is None:
        return path
    shown = repr(path)
    shown = shown if len(shown) <= 200 else f"{shown[:200]}..."
    raise UserErrorException(f"The name {shown} cannot be used: {fault}.")


def without_dot(path: str) -> str:
    """`outputs/x` for `./outputs/x`, as SDK v1 takes it wherever a file or folder of its own is named."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def resolve_under(root: str | os.PathLike[str], path: str) -> str:
    """The absolute place of `path` below `root`, links resolved; UserErrorException if a link leads out.

    The answer holds while nobody else plants links below `root`.
    """
    check_path(path)
    real_root = os.path.realpath(root)
    target = os.path.realpath(os.path.join(real_root, path))
    if not target.startswith(real_root.rstrip(os.sep) + os.sep):
        raise UserErrorException(f"The name {path!r} cannot be used: a link leads it out of its folder.")
    return target


# Control characters would break lines and terminals; lone surrogates are names that are not valid UTF-8.
_BAD_CHARACTER = re.compile("[\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DRIVE = re.compile("[A-Za-z]:")
_SHA256 = re.compile("[0-9a-f]{64}")


def _fault(path: Any) -> str | None:
    if not isinstance(path, str):
        return "it is not text"
    if not path:
        return "it is empty"
    if len(path) > MAX_PATH_LENGTH:
        return f"it is longer than {MAX_PATH_LENGTH} characters"
    bad = _BAD_CHARACTER.search(path)
    if bad is not None:
        return _fault_of_character(bad.group())
    if path[0] == "/" or _DRIVE.match(path):
        return "it is not relative"
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            return "it has an empty segment" if not segment else f"it has the segment '{segment}'"
    return None


def _fault_of_character(character: str) -> str:
    if character == "\\":
        return "it has a backslash; separate folders with '/'"
    if "\ud800" <= character <= "\udfff":
        return "it is not valid UTF-8"
    return f"it has the control character {character!r}"


def _entry(row: Any) -> TreeEntry:
    if not isinstance(row, (list, tuple)) or len(row) != 4 or not isinstance(row[0], str):
        raise UserErrorException(f"A row of a tree is [path, hash, size, executable], not {row!r:.200}.")
    return TreeEntry(*row)


def _check_entries(entries: tuple[TreeEntry, ...]) -> None:
    paths = set()
    for path, digest, size, executable in entries:
        check_path(path)
        if path in paths:
            raise UserErrorException(f"The tree has {path!r} twice.")
        paths.add(path)
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise UserErrorException(f"The hash of {path!r} is not a SHA-256 in lower-case hexadecimal digits.")
        if type(size) is not int or not 0 <= size < 2**63:
            raise UserErrorException(f"The size of {path!r} is not a number of bytes.")
        if type(executable) is not bool:
            raise UserErrorException(f"Whether {path!r} is executable must be true or false.")
    _check_no_file_is_a_folder(paths)


def _check_no_file_is_a_folder(paths: set[str]) -> None:
    folders = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            if folder in paths:
                raise UserErrorException(f"The tree has {folder!r} as a file and as a folder.")
            folders.add(folder)
            folder = folder.rpartition("/")[0]
