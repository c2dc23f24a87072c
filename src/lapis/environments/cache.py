"""The environments of this machine: what is there, who uses it, and removing what was not used for longest."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lapis.environments import bytecode, in_use, uv
from lapis.environments.build import about
from lapis.environments.turns import MARKER, ready
from lapis.environments.values import Lock
from lapis.machine.commands import Stopped, Tell, silent

_HASH = re.compile(r"[0-9a-f]{32}")
_YOUNG = 60.0  # seconds
_CLEAN_WITHIN = 60.0  # seconds; uv waits for whoever installs from its cache meanwhile

Files = Mapping[tuple[int, int], int]  # bytes on the disk of each file, which may have several names: hard links


@dataclass(frozen=True)
class Built:
    hash: str
    folder: str
    python: str
    packages: int
    created: float
    last_used: float
    used_by: tuple[int, ...]  # processes that run in it, or build it, as far as the kernel tells
    size: int = 0  # bytes, with those that it shares with others


@dataclass(frozen=True)
class Pruned:
    removed: tuple[str, ...]
    freed: int
    kept: int  # bytes that environments and caches take now


def built(root: str, sizes: bool = True) -> list[Built]:
    """Every environment that is whole, the last used first."""
    there = [_described(root, name) for name in _names(root) if ready(os.path.join(root, name))]
    found = [each for each in there if each is not None]
    if sizes:
        found = [replace(each, size=sum(_files(each.folder).values())) for each in found]
    return sorted(found, key=lambda each: each.last_used, reverse=True)


def lock_of(folder: str) -> Lock:
    with open(os.path.join(folder, "lock.json"), encoding="utf-8") as file:
        return Lock.from_json(json.load(file))


def pins(lock: Lock) -> dict[str, str]:
    """Each package of a lock, and its version or address."""
    found: dict[str, str] = {}
    for line in lock.packages.splitlines():
        requirement = line.split(" --hash")[0].split(";")[0].rstrip(" \\")
        if requirement and not requirement.startswith((" ", "#", "-")):
            name, _, version = requirement.partition("==" if "==" in requirement.split("@")[0] else "@")
            found[name.split("[")[0].strip()] = version.strip()
    return found


def prune(root: str, keep_bytes: int, tell: Tell = silent) -> Pruned:
    """Remove until environments and caches take no more than `keep_bytes`: environments that were not used for longest,
    and with them the packages that no other has. One in which something runs, or that is being built, stays.
    """
    if not os.path.isdir(root):
        return Pruned((), 0, 0)
    with in_use.alone(root, "prune"):
        return _pruned(root, keep_bytes, tell)


def over_limit(root: str, keep_bytes: int) -> Pruned:
    """What `prune` would remove of environments."""
    files = {each: _files(each.folder) for each in built(root, sizes=False)}
    taken = _taken_by(root, files.values())
    gone = too_much(files, keep_bytes) if taken > keep_bytes else []
    left = _taken_by(root, [files[each] for each in files if each not in gone])
    return Pruned(tuple(each.hash for each in gone), max(0, taken - left), left)


def too_much(files: Mapping[Built, Files], keep_bytes: int) -> list[Built]:
    """Which environments have to go, the one that was used longest ago first."""
    names = Counter(file for each in files.values() for file in each)
    total = _together(files.values())
    gone: list[Built] = []
    for each in sorted(files, key=lambda each: each.last_used):
        if total <= keep_bytes:
            break
        if not each.used_by:
            names.subtract(files[each].keys())
            total -= sum(size for file, size in files[each].items() if not names[file])
            gone.append(each)
    return gone


def _pruned(root: str, keep_bytes: int, tell: Tell) -> Pruned:
    _remove_remains(root)
    files = {each: _files(each.folder) for each in built(root, sizes=False)}
    before = after = _taken_by(root, files.values())
    removed: list[str] = []
    if before > keep_bytes:
        packages: set[str] = set()
        for each in too_much(files, keep_bytes):
            names = set(pins(lock_of(each.folder)))
            if _removed(root, each.hash):
                day = time.strftime("%F", time.localtime(each.last_used))
                tell(f"Removed environment {each.hash}, last used on {day}")
                removed.append(each.hash)
                packages |= names
                del files[each]
        for each in files:
            packages -= set(pins(lock_of(each.folder)))
        _clean_caches(root, packages, [each.folder for each in files])
        after = _taken_by(root, files.values())
    if after > keep_bytes and _owns_cache():
        tell("Cleaning the cache of packages")
        _uv(root, "cache", "clean")  # environments keep their files: they have their own
        after = _taken_by(root, files.values())
    return Pruned(tuple(removed), max(0, before - after), after)


def _names(root: str) -> set[str]:
    """The environments that something lies here of: a folder, or files that begin with the environment's name."""
    entries = os.listdir(root) if os.path.isdir(root) else []
    return {entry.split(".")[0] for entry in entries if _HASH.fullmatch(entry.split(".")[0])}


def _described(root: str, name: str) -> Built | None:
    folder = os.path.join(root, name)
    try:
        known = about(folder)
        used = os.stat(os.path.join(folder, MARKER)).st_mtime
    except FileNotFoundError:
        return None  # removed this moment
    users = tuple(in_use.holders(root, name))
    return Built(name, folder, known["python"], known["packages"], known["created"], used, users)


@contextmanager
def _taken(root: str, name: str) -> Iterator[bool]:
    """Whether we may remove it; nobody builds or begins to use it meanwhile."""
    file = in_use.take(root, name)
    try:
        yield file is not None
    finally:
        if file is not None:
            os.close(file)


def _removed(root: str, name: str) -> bool:
    folder = os.path.join(root, name)
    with _taken(root, name) as ours:
        if not ours:
            return False
        # The marker first: killed from here on, it is a remainder and no environment. The lock file last.
        lock = in_use.path_of(root, name)
        for path in (os.path.join(folder, MARKER), folder, *(_beside(root, name) - {lock}), lock):
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            elif os.path.exists(path):
                os.unlink(path)
    return True


def _beside(root: str, name: str) -> set[str]:
    return {os.path.join(root, entry) for entry in os.listdir(root) if entry.startswith(f"{name}.")}


def _remove_remains(root: str) -> None:
    """What builds left that were killed or failed, and the lock files of environments that are gone."""
    for name in _names(root):
        if not ready(os.path.join(root, name)) and not any(_is_young(path) for path in _beside(root, name)):
            _removed(root, name)


def _is_young(path: str) -> bool:
    """Somebody may be about to build it."""
    try:
        return time.time() - os.stat(path).st_mtime < _YOUNG
    except OSError:
        return False


def _clean_caches(root: str, packages: Collection[str], folders: Collection[str]) -> None:
    _drop_unused_bytecode(bytecode.store(root), {name for folder in folders for name in bytecode.wheels(folder)})
    if _owns_cache():
        _uv(root, "cache", "prune")
        if packages:
            _uv(root, "cache", "clean", *sorted(packages))


def _owns_cache() -> bool:
    """The user's own cache is the user's to clean."""
    return not os.environ.get("UV_CACHE_DIR")


def _uv(root: str, *arguments: str) -> None:
    deadline = time.monotonic() + _CLEAN_WITHIN
    try:
        uv.run(arguments, root, canceled=lambda: time.monotonic() > deadline)
    except Stopped:
        pass  # somebody installs from it: the next time


def _drop_unused_bytecode(store: str, used: Collection[str]) -> None:
    for tag in os.scandir(store) if os.path.isdir(store) else []:
        for wheel in os.scandir(tag):
            if wheel.name not in used:
                shutil.rmtree(wheel.path, ignore_errors=True)


def _taken_by(root: str, environments: Collection[Files]) -> int:
    """The bytes of the environments and of the caches that are ours."""
    caches = [bytecode.store(root), *([uv.cache_folder(root)] if _owns_cache() else [])]
    return _together([*environments, *(_files(cache) for cache in caches)])


def _together(sets: Collection[Files]) -> int:
    """The bytes of several sets of files, each file once."""
    union: dict[tuple[int, int], int] = {}
    for files in sets:
        union.update(files)
    return sum(union.values())


def _files(folder: str) -> Files:
    found: dict[tuple[int, int], int] = {}
    stack = [folder]
    while stack:
        try:
            entries = list(os.scandir(stack.pop()))
        except OSError:
            continue  # removed meanwhile
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    status = entry.stat(follow_symlinks=False)
                    found[status.st_dev, status.st_ino] = status.st_blocks * 512
            except OSError:
                continue
    return found
