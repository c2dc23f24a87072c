"""Compiled bytecode: compiling numpy and its like takes seconds, so it is done once for a wheel and not waited for.

A process of its own, started when an environment counts as built, copies what was compiled of the same wheels before,
which takes a moment. Then it compiles what is missing, with low priority, and keeps it for the environments to come in
`cache/bytecode` beside `environments`. That works because the files of a wheel have the same time in every environment,
and time and size are what Python compares.
"""

from __future__ import annotations

import glob
import os
import subprocess
import threading

from lapis.environments.inside import compile_wheels
from lapis.machine import json_files


def store(root: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(root)), "cache", "bytecode")


def wheels(folder: str) -> list[str]:
    """What the bytecode of an environment's wheels is kept under."""
    sites = glob.glob(os.path.join(glob.escape(folder), "lib", "python*", "site-packages"))
    return [name for site in sites for name in compile_wheels.wheels(site)]


def compile_later(folder: str, root: str, keep_open: int) -> None:
    """Start it, and return. `keep_open`, the environment's lock, stays open meanwhile."""
    process = subprocess.Popen(
        [*_command(folder, root), "later"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[keep_open],
        start_new_session=True,  # it outlives us
    )
    threading.Thread(target=process.wait, daemon=True).start()  # so that it leaves no zombie


def compile_now(folder: str, root: str) -> None:
    """Compile what is missing, beside one that is at it already, and wait for it."""
    subprocess.run(_command(folder, root), stdin=subprocess.DEVNULL, check=False)


def _command(folder: str, root: str) -> list[str]:
    return [_python(folder), "-I", "-S", compile_wheels.__file__, folder, store(root)]


def _python(folder: str) -> str:
    """The machine's own below it, which compiles and runs nothing: a package may have put anything in its place."""
    about = json_files.read(os.path.join(folder, "lapis-environment.json")) or {}
    return str(about.get("interpreter") or os.path.join(folder, "bin", "python"))
