"""What tests need beyond Python: installed from Debian where that can be done, else skipped with a reason.

What PyPI has is not here but in requirements/dev.in. With CI=true nothing is skipped: a missing component is a failure
there.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import pytest

from lapis.machine import mounts
from tests.turns import turn

_PATIENCE = 600  # seconds that another apt on this machine may take
_LISTS = "/var/lib/apt/lists/lock"  # named in the complaint when another one holds it


def need(command: str, package: str) -> None:
    """Go on only if `command` (or a file that fits it) is there, after installing `package` if that can be done."""
    why = _get(command, package)
    if why:
        lacking(f"{command} is not installed, and {why}")


def need_fuse() -> None:
    """Go on only where file systems can be mounted. That is up to the machine, so CI may skip it too."""
    why = _why_no_mount()
    if why:
        pytest.skip(f"nothing can be mounted here: {why}")


def lacking(why: str) -> NoReturn:
    """Skip with a reason; in CI fail with it."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must not skip: {why}")
    pytest.skip(why)


@functools.cache
def _why_no_mount() -> str | None:
    with tempfile.TemporaryDirectory() as point:
        why = mounts.impossible()
        if why is None:
            try:
                os.close(mounts.attach(point))
            except OSError as error:  # a container may not, although it has the device
                why = str(error)
            mounts.detach(point)
        return why


@functools.cache
def _get(command: str, package: str) -> str:
    """Why the command cannot be had; empty once it is there."""
    if _there(command):
        return ""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"cannot be installed from here (apt-get install {package})"
    with turn(Path(tempfile.gettempdir(), "lapis-tests-apt.lock")):
        if _there(command):  # another process of this session was first
            return ""
        complaint = install(package)
    return "" if _there(command) else f"apt-get install {package} failed: {complaint}"


def _there(what: str) -> bool:
    return bool(shutil.which(what) or glob.glob(what))


def install(package: str, patience: float = _PATIENCE) -> str:
    """Install a package, after any other apt that is at work; what was complained of."""
    deadline = time.monotonic() + patience
    while _LISTS in (complaint := _apt("update")):  # apt-get waits for no other that updates the lists of packages
        if time.monotonic() > deadline:
            return f"another apt has held the lists of packages for {patience:g} s: {complaint}"
        pause(min(1.0, patience))
    return _apt("-o", f"DPkg::Lock::Timeout={patience:g}", "install", "-y", "--no-install-recommends", package)


def pause(seconds: float) -> None:
    """Of its own, so that a test can stand in for it and leave `time.sleep` to the threads of other tests."""
    time.sleep(seconds)


def _apt(*words: str) -> str:
    """The end of what apt-get complained of."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(["apt-get", "-q", *words], env=environment, capture_output=True, text=True)
    return done.stderr.strip()[-300:]
