"""A clock for durations, which goes on evenly whatever becomes of the time of day.

Its hands stand where the time of day was when it was first asked for on this machine since it booted. A server that is
started again finds them there, so that what it wrote down by this clock can be compared; what people are shown is the
time of day.
"""

from __future__ import annotations

import time
from typing import Callable

from lapis.machine import json_files


def steady(path: str) -> Callable[[], float]:
    """The clock whose hands are kept in the file at `path`."""
    boot = _boot()
    kept = json_files.read(path)
    if kept is None or kept.get("boot") != boot or not boot:
        kept = {"boot": boot, "ahead": time.time() - time.monotonic()}
        json_files.write(path, kept)
    ahead = float(kept["ahead"])
    return lambda: time.monotonic() + ahead


def _boot() -> str:
    """Which boot of the machine this is; nothing that the monotonic clock says outlives it."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""
