"""Brings the bytecode of an environment's packages, run by its own Python: any from 3.7, the standard library alone.

python -I -S compile_wheels.py <environment> <where bytecode is kept> [later]
"""

from __future__ import annotations

import base64
import csv
import glob
import hashlib
import os
import py_compile
import shutil
import sys
import time
from importlib.util import cache_from_source

BUILT_AT = 1577836800  # the time of every file of a wheel in every environment; bytecode notes that of its source

_STALE = 600.0  # seconds: who began it was killed


def main(folder: str, store: str, later: bool) -> None:
    """May be done by several at once: each leaves out what it finds done."""
    kept = os.path.join(store, str(sys.implementation.cache_tag))
    sites = glob.glob(os.path.join(glob.escape(folder), "lib", "python*", "site-packages"))
    for site in sites:
        for name in wheels(site):
            _bring(os.path.join(kept, name), site)
    if later:
        os.nice(19)  # nobody waits for the rest: whatever else runs comes first
    for site in sites:
        _compile_site(site, kept)


def wheels(site: str) -> dict[str, str]:
    """The .dist-info folders of a site-packages folder, by a name for exactly these sources."""
    found = {}
    for info in glob.glob(os.path.join(glob.escape(site), "*.dist-info")):
        try:
            if int(os.stat(os.path.join(info, "METADATA")).st_mtime) != BUILT_AT:
                continue  # files with times of their own fit no other's bytecode
        except OSError:
            continue
        identity = hashlib.sha256(repr(sorted(_sources(site, info).items())).encode()).hexdigest()[:32]
        found[f"{os.path.basename(info)[: -len('.dist-info')]}-{identity}"] = info
    return found


def _bring(kept: str, site: str) -> None:
    """Give the environment what is compiled of a wheel already: copies, since scripts may write to theirs."""
    for folder, _, files in os.walk(kept):
        target = os.path.join(site, os.path.relpath(folder, kept))
        if files:
            os.makedirs(target, exist_ok=True)
        for name in files:
            _place(os.path.join(folder, name), os.path.join(target, name))


def _place(source: str, target: str) -> None:
    if os.path.exists(target):
        return  # the script was faster
    draft = f"{target}.{os.getpid()}"
    try:
        shutil.copyfile(source, draft)
        os.replace(draft, target)
    except OSError:
        pass  # it was pruned this moment, or the disk is full: then it is compiled


def _compile_site(site: str, store: str) -> None:
    shared = {info: name for name, info in wheels(site).items()}
    for info in glob.glob(os.path.join(glob.escape(site), "*.dist-info")):
        sources = _sources(site, info)
        if info in shared:
            _keep(site, sources, os.path.join(store, shared[info]))
        for path in sources:
            _compiled(os.path.join(site, path))


def _sources(site: str, info: str) -> dict[str, str]:
    """The modules of a wheel and the hash of each, as the wheel notes it."""
    try:
        with open(os.path.join(info, "RECORD"), newline="", encoding="utf-8") as file:
            rows = [(row + [""])[:2] for row in csv.reader(file) if row]
        modules = [row for row in rows if row[0].endswith(".py") and not os.path.isabs(row[0]) and row[0][:2] != ".."]
        return {path: noted or _hash(os.path.join(site, path)) for path, noted in modules}
    except (OSError, UnicodeDecodeError):
        return {}


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _compiled(source: str) -> bool:
    """Whether there is bytecode of this very source, made now if need be."""
    target = cache_from_source(source)
    try:
        status = os.stat(source)
        with open(target, "rb") as file:
            head = file.read(16)
        stamp = [int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF]
        if head[8:16] == b"".join(number.to_bytes(4, "little") for number in stamp):
            return True
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return _compile(source, target)


def _compile(source: str, target: str) -> bool:
    try:
        py_compile.compile(source, target, doraise=True)
        return True
    except (py_compile.PyCompileError, OSError, ValueError, RecursionError):
        return False  # some packages bring files for another Python


def _keep(site: str, sources: dict[str, str], place: str) -> None:
    """For the environments to come. Whole or not at all; whoever was first is right.

    Compiled anew from sources that are as the wheel noted them: what lies in the environment a script may have made.
    """
    draft = f"{place}.making"
    if os.path.isdir(place) or not sources or not _is_our_turn(draft):
        return
    try:
        for path, noted in sources.items():
            source, pyc = os.path.join(site, path), cache_from_source(path)
            target = os.path.join(draft, pyc)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not _compile(source, target):
                continue
            if _hash(source) != noted:
                raise OSError(f"{source} was changed")
            _place(target, os.path.join(site, pyc))
        os.rename(draft, place)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)  # a full disk, or a changed source: each compiles for itself


def _is_our_turn(draft: str) -> bool:
    """Whether nobody else is at it."""
    try:
        if time.time() - os.stat(draft).st_mtime > _STALE:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError:
        pass  # it is not there
    try:
        os.makedirs(draft)
        return True
    except OSError:
        return False


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], later=sys.argv[3:] == ["later"])
