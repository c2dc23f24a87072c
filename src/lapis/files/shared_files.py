"""Lays a file that a cache keeps for all runs where one run reads it, so that what the run writes stays its own.

A copy that shares its blocks where the file system can do that. Else a copy, up to a size: a larger one would cost each
run time and room, so it is a second name of the kept file, which is read-only and looked at before its next use.
"""

from __future__ import annotations

import os

from lapis.machine import cloning

COPIED_UP_TO = 64 << 20  # bytes: some hundredths of a second


def lay(kept: str, place: str) -> None:
    """`place` is read-only, as what a mount shows."""
    if os.path.getsize(kept) > COPIED_UP_TO and not cloning.is_possible(os.path.dirname(place)):
        try:
            os.link(kept, place)
            return
        except OSError:
            pass  # another file system
    cloning.copy(kept, place)
    os.chmod(place, 0o444)
