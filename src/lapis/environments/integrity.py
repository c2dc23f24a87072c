"""Whether an environment is as it was built: its files are listed with their hashes, and made read-only.

Many runs share an environment, and none may change it for the next. A quick look (length and time of each file) follows
every run; `lapis env verify` reads every byte.
"""

from __future__ import annotations

import base64
import csv
import glob
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lapis.environments.inside.compile_wheels import BUILT_AT
from lapis.machine import whole_files

LIST = "lapis-files.json"
_BYTECODE = "__pycache__"  # comes and goes: Python compares it with its source


class _File(NamedTuple):
    size: int
    time: int
    hash: str  # of a link: where it leads


def seal(folder: str, ours: frozenset[str], same_time: bool) -> None:
    """List every file, `ours` at the top of the folder apart, and make it read-only.

    With `same_time` each gets the same time, so that what was compiled of a wheel fits it in every environment.
    """
    found = {}
    for name in _names(folder, ours):
        path = os.path.join(folder, name)
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode):
            if same_time:
                os.utime(path, (BUILT_AT, BUILT_AT))
            os.chmod(path, stat.S_IMODE(status.st_mode) & ~0o222)
            status = os.lstat(path)
        found[name] = _File(status.st_size, status.st_mtime_ns, _hash(path))
    whole_files.write(os.path.join(folder, LIST), json.dumps(found).encode())


def changed(folder: str, ours: frozenset[str], thoroughly: bool = False) -> list[str]:
    """The files that are not as they were built, are new, or are gone; with `thoroughly` every byte is read."""
    listed = _listed(folder)
    if listed is None:
        return []  # built by a release that kept no list
    there = set(_names(folder, ours))
    differ = {name for name in there & set(listed) if not _same(os.path.join(folder, name), listed[name], thoroughly)}
    return sorted(differ | (there ^ set(listed)))


def not_as_packed(folder: str) -> dict[str, str]:
    """The packages some file of which has not the hash that the package itself notes, each with one such file."""
    found = {}
    for record in glob.glob(
        os.path.join(glob.escape(folder), "lib", "python*", "site-packages", "*.dist-info", "RECORD")
    ):
        site, info = os.path.split(os.path.dirname(record))
        wrong = next((name for name, noted in _noted(record) if _packed_hash(os.path.join(site, name)) != noted), None)
        if wrong is not None:
            found[info.split("-")[0]] = wrong
    return found


def _names(folder: str, ours: frozenset[str]) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != _BYTECODE]
        below = os.path.relpath(where, folder)
        links = [name for name in folders if os.path.islink(os.path.join(where, name))]
        for name in (*names, *links):
            if below != os.curdir:
                yield os.path.join(below, name)
            elif name not in ours and name != LIST:
                yield name


def _listed(folder: str) -> Mapping[str, _File] | None:
    try:
        with open(os.path.join(folder, LIST), encoding="utf-8") as file:
            return {name: _File(*facts) for name, facts in json.load(file).items()}
    except (OSError, ValueError):
        return None


def _same(path: str, listed: _File, thoroughly: bool) -> bool:
    status = os.lstat(path)
    if (status.st_size, status.st_mtime_ns) != (listed.size, listed.time):
        return False
    return not thoroughly or _hash(path) == listed.hash


def _hash(path: str) -> str:
    if os.path.islink(path):
        return os.readlink(path)
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _noted(record: str) -> Iterator[tuple[str, str]]:
    """The files among the packages that a wheel notes a hash of; those in bin/ are rewritten when it is installed."""
    with open(record, newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            if len(row) > 1 and row[1].startswith("sha256=") and not row[0].startswith(("..", "/")):
                yield row[0], row[1]


def _packed_hash(path: str) -> str:
    """As wheels write it."""
    try:
        digest = bytes.fromhex(_hash(path))
    except (OSError, ValueError):
        return ""
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
