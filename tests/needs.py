"""What tests need beyond Python: installed from Debian where that can be done, else skipped with a reason.

With CI=true nothing is skipped: a missing component is a failure there.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import subprocess

import pytest


def need(command: str, package: str) -> None:
    """Go on only if `command` (or a file that fits it) is there, after installing `package` if that can be done."""
    why = _get(command, package)
    if why:
        lacking(f"{command} is not installed, and {why}")


def lacking(why: str) -> None:
    """Skip with a reason; in CI fail with it."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must not skip: {why}")
    pytest.skip(why)


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
