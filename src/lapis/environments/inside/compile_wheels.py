"""Brings the bytecode of an environment's packages, run by its own Python: any from 3.7, the standard library alone.

python -I -S compile_wheels.py <environment> <where bytecode is kept> [later]
"""

from __future__ import annotations

import csv
import glob
import hashlib
import os
import py_compile
import shutil
import sys
from importlib.util import cache_from_source


def main(folder: str, store: str, later: bool) -> None:
    """May be done by several at once: each leaves out what it finds done."""
    kept = os.path.join(store, str(sys.implementation.cache_tag))
    sites = glob.glob(os.path.join(glob.escape(folder), "lib", "python*", "site-packages"))
    for site in sites:
        for name in _wheels(site):
            _link(os.path.join(kept, name), site)
    if later:
        os.nice(19)  # nobody waits for the rest: whatever else runs comes first
    for site in sites:
        _compile_site(site, kept)


def _wheels(site: str) -> dict[str, str]:
    """The .dist-info folders of a site-packages folder, by a name for exactly these files.

    Only of wheels that share their files with uv's cache: copies have times of their own, and fit no other's bytecode.
    """
    found = {}
    for info in glob.glob(os.path.join(glob.escape(site), "*.dist-info")):
        try:
            status = os.stat(os.path.join(info, "METADATA"))
            with open(os.path.join(info, "WHEEL"), "rb") as file:
                kind = hashlib.sha256(file.read()).hexdigest()[:12]
        except OSError:
            continue
        if status.st_nlink > 1:
            name = os.path.basename(info)[: -len(".dist-info")]
            found[f"{name}-{kind}-{status.st_mtime_ns}"] = info
    return found


def _link(kept: str, site: str) -> None:
    """Give the environment what is compiled of a wheel already."""
    for folder, _, files in os.walk(kept):
        target = os.path.join(site, os.path.relpath(folder, kept))
        if files:
            os.makedirs(target, exist_ok=True)
        for name in files:
            try:
                os.link(os.path.join(folder, name), os.path.join(target, name))
            except OSError:
                pass  # the script was faster, or it was pruned this moment: then it is compiled


def _compile_site(site: str, store: str) -> None:
    shared = {info: name for name, info in _wheels(site).items()}
    for info in glob.glob(os.path.join(glob.escape(site), "*.dist-info")):
        compiled = [path for path in _sources(site, info) if _compiled(os.path.join(site, path))]
        if info in shared:
            _keep(site, compiled, os.path.join(store, shared[info]))


def _sources(site: str, info: str) -> list[str]:
    try:
        with open(os.path.join(info, "RECORD"), newline="", encoding="utf-8") as file:
            paths = [row[0] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError):
        return []
    return [path for path in paths if path.endswith(".py") and not os.path.isabs(path) and not path.startswith("..")]


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
    try:
        py_compile.compile(source, target, doraise=True)
        return True
    except (py_compile.PyCompileError, OSError, ValueError, RecursionError):
        return False  # some packages bring files for another Python


def _keep(site: str, sources: list[str], place: str) -> None:
    """For the environments to come. Whole or not at all; whoever was first is right."""
    if os.path.isdir(place) or not sources:
        return
    draft = f"{place}.{os.getpid()}"
    try:
        for source in sources:
            pyc = cache_from_source(source)
            target = os.path.join(draft, pyc)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.link(os.path.join(site, pyc), target)
        os.rename(draft, place)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)  # another file system or a full disk: each compiles for itself


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], later=sys.argv[3:] == ["later"])
