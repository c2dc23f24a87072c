"""The files that the folders of a run hold, each by a name that a run can have.

Nothing is left out in silence: a name that cannot be stored is escaped, what is no file of the run's is said.
"""

from __future__ import annotations

import os
import re
import stat
from io import BufferedReader
from typing import Callable, Iterator, NamedTuple

from lapis.domain.tree import check_path
from lapis.errors import UserErrorException

_LONGEST = 255  # bytes between two slashes: more, no file system takes
_KEPT = 180  # of a longer one, before the mark that tells it from others
_ODD = re.compile("[\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Stamp(NamedTuple):
    """What changes when a file does. Its time alone does not: `cp -p` and `os.utime` set that as they like."""

    size: int
    modified: int
    changed: int
    inode: int


class Collected:
    """What lies below folders of `root`. Links are followed to files of `root` alone: elsewhere lies what is not the
    run's to store."""

    def __init__(self, root: str, is_old: Callable[[str], bool] = lambda path: False) -> None:
        self.root = root
        self._is_old = is_old  # whether a path is none of what is looked for
        self.notices: dict[str, str] = {}  # what the user should know, by the path that it is about
        self._names: dict[str, str] = {}  # as it is found -> as it is stored
        self._taken: set[str] = set()
        self._folders: set[str] = set()  # of those

    def files(self, folder: str, prefix: str | None = None) -> list[tuple[str, str]]:
        """Name and path of all that can be stored below `folder`; the names begin with `prefix`, else with its own."""
        top, prefix = os.path.join(self.root, folder), folder if prefix is None else prefix
        if os.path.islink(top) and not self._inside(top):
            self._say(top, f"{prefix!r} was made a link to {os.readlink(top)!r}, outside of the run: nothing is stored")
            return []
        return [(self._name(prefix, top, path), path) for path in self._walk(prefix, top)]

    def _walk(self, prefix: str, top: str) -> Iterator[str]:
        for where, folders, leaves in os.walk(top, onerror=lambda error: self._cannot_read(prefix, top, error)):
            for folder in folders:
                path = os.path.join(where, folder)
                if os.path.islink(path) and not self._inside(path):
                    self._say(path, f"{_raw(prefix, top, path)!r} is a link out of the run and was not followed")
            for leaf in sorted(leaves):
                path = os.path.join(where, leaf)
                if self._is_old(path):
                    continue
                why = self._why_not(path)
                if why is None:
                    yield path
                elif why:
                    self._say(path, f"{_raw(prefix, top, path)!r} {why}")

    def _why_not(self, path: str) -> str | None:
        """Why it is not stored; None if it is, nothing to say of one that is gone by now."""
        try:
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                if not self._inside(path):
                    return "is a link out of the run and was not followed"
                found = os.stat(path)
        except OSError:
            return "is a link that leads nowhere" if os.path.islink(path) else ""
        return None if stat.S_ISREG(found.st_mode) else "is no file and was not stored"

    def _inside(self, path: str) -> bool:
        return os.path.realpath(path).startswith(os.path.realpath(self.root) + os.sep)

    def _name(self, prefix: str, top: str, path: str) -> str:
        """The same for the same file, however often it is asked for."""
        raw = _raw(prefix, top, path)
        name = self._names.get(raw)
        if name is None:
            name = raw if storable(raw) else escaped(raw)
            name = name if self._is_free(name) else f"{name.replace('/', '%2F').replace('%2F', '/', 1)}~{_mark(raw)}"
            self._names[raw] = name
            self._taken.add(name)
            self._folders.update(_folders_of(name))
            if name != raw:
                self._say(path, f"{raw!r} is stored as {name!r}: no run can have a file of that name")
        return name

    def _is_free(self, name: str) -> bool:
        """Whether no other file has it, and none has it for a folder or is one of its folders: a script may remove a
        file and make a folder of that name."""
        return not (name in self._taken or name in self._folders or self._taken.intersection(_folders_of(name)))

    def _cannot_read(self, prefix: str, top: str, error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):  # gone by now
            path = str(error.filename)
            self._say(path, f"What lies in {_raw(prefix, top, path)!r} could not be stored: {error.strerror}")

    def _say(self, path: str, what: str) -> None:
        self.notices.setdefault(path, what)


def opened(path: str, root: str | None = None) -> BufferedReader:
    """A file to be read, below `root` if that is given: who swaps a folder for a link meanwhile gains nothing."""
    if root is None:
        return open(path, "rb")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(os.path.realpath(path), flags)
    try:
        real = os.path.realpath(f"/proc/self/fd/{descriptor}") if os.path.isdir("/proc/self") else path
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not real.startswith(os.path.realpath(root) + os.sep):
            raise FileNotFoundError(2, "No such file of the run", path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def stamp(path: str) -> Stamp | None:
    """None of a file that is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def storable(name: str) -> bool:
    try:
        check_path(name)
    except UserErrorException:
        return False
    return all(len(part.encode()) <= _LONGEST for part in name.split("/"))


def escaped(name: str) -> str:
    """A name that can be stored in place of one that cannot: odd characters as %0A, long parts cut and marked."""
    name = _ODD.sub(lambda odd: "".join(f"%{byte:02X}" for byte in os.fsencode(odd.group())), name)
    parts = [_shortened(part) for part in name.split("/")]
    short = "/".join(parts)
    return short if storable(short) else f"{parts[0]}/{parts[-1][:_KEPT]}~{_mark(name)}"


def _shortened(part: str) -> str:
    if len(part.encode()) <= _LONGEST:
        return part
    return part.encode()[:_KEPT].decode("utf-8", "ignore") + f"~{_mark(part)}"


def _mark(text: str) -> str:
    import hashlib  # late: most names are plain

    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]


def _folders_of(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _raw(prefix: str, top: str, path: str) -> str:
    """The name as it is found."""
    inside = os.path.relpath(path, top).replace(os.sep, "/")
    return prefix if inside == "." else f"{prefix}/{inside}"
