"""What tests need beyond Python: installed from Debian where that can be done, else skipped with a reason.

With CI=true nothing is skipped: a missing component is a failure there.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import subprocess
import tempfile

import pytest

from lapis.machine import mounts


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


def lacking(why: str) -> None:
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
    if _there(command):
        return ""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"cannot be installed from here (apt-get install {package})"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", package]):
        done = subprocess.run(["apt-get", *step], env=environment, capture_output=True, text=True)
    return "" if _there(command) else f"apt-get install {package} failed: {done.stderr.strip()[-300:]}"


def _there(what: str) -> bool:
    return bool(shutil.which(what) or glob.glob(what))
