"""What of a home belongs into a backup: everything but blobs that nothing names, what can be made again, and what says
how things are at this moment."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

DATABASE = "lapis.db"
MADE_AGAIN = frozenset({"cache", "server-environments", "sources", "tools", "streams", "work"})  # folders
OF_RUNS = frozenset({DATABASE, "blobs", "token", "secrets.key", "live"})  # what makes a home somebody's
_OF_THE_MOMENT = frozenset(
    {"server.json", "server.lock", "upkeep.lock", "upkeep.json", "open.html", "port", "restoring"}
)
_APART = frozenset(
    {"blobs", "live", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"}
)  # copied with care, by what names them
_KEPT_OF_ENVIRONMENTS = frozenset({"locks", "resolved"})  # an environment is built again of its lock


def plain_files(home: str) -> Iterator[str]:
    """The names, below the home, of the files that are copied as they are."""
    for top in sorted(os.listdir(home)):
        if top in MADE_AGAIN | _OF_THE_MOMENT | _APART or top.startswith(("server.log", f"{DATABASE}.damaged")):
            continue
        if top == "environments":
            for each in _KEPT_OF_ENVIRONMENTS:
                yield from _below(home, f"{top}/{each}")
        elif os.path.isdir(os.path.join(home, top)):
            yield from _below(home, top)
        elif not top.endswith(".part"):
            yield from _if_plain(home, top)


def is_used(home: str) -> bool:
    """Whether somebody's runs are here, and not only what a server or a command made for itself."""
    there = set(os.listdir(home)) if os.path.isdir(home) else set()
    return bool(there & OF_RUNS)


def _below(home: str, folder: str) -> Iterator[str]:
    for at, _, names in os.walk(os.path.join(home, folder)):
        for name in sorted(names):
            yield from _if_plain(home, os.path.relpath(os.path.join(at, name), home))


def _if_plain(home: str, name: str) -> Iterator[str]:
    """No sockets, no links."""
    try:
        if stat.S_ISREG(os.lstat(os.path.join(home, name)).st_mode):
            yield name
    except FileNotFoundError:
        pass
