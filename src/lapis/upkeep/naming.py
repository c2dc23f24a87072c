"""Which snapshots and blobs a database names: everything else in `blobs/` is nobody's.

A run or an asset names whatever stands in it and looks like a hash. That may keep a blob too many, and never one too
few: a field that is added tomorrow counts without a word here.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

_HASH = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_BODIES = ("runs", "assets")  # the tables with a column `body` that may hold hashes

ReadBlob = Callable[[str], bytes]


@dataclass(frozen=True)
class Names:
    snapshots: frozenset[str]
    blobs: frozenset[bytes]  # as bytes: half as long
    certain: frozenset[bytes]  # those of them that are blobs for sure, and not some other hash
    unreadable: tuple[str, ...] = ()  # snapshots whose list of files is lost or damaged: what they hold is not known

    def blob(self, digest: str) -> bool:
        return bytes.fromhex(digest) in self.blobs


@contextmanager
def view_of(path: str) -> Iterator[sqlite3.Connection]:
    """The database as it is now, for as long as the block lasts, whatever is written meanwhile."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, timeout=30.0)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
        yield connection


def names_in(
    database: sqlite3.Connection, read: ReadBlob, without: Collection[int] = (), newer_than: float = float("inf")
) -> Names:
    """What is named once the runs `without` (their primary keys) are gone. `read` gives a blob's bytes.

    A snapshot made after `newer_than` counts as named: its run is about to come.
    """
    gone, words = frozenset(without), set()
    for table in _BODIES:
        for row in database.execute(f"SELECT pk, body FROM {table}"):
            if table != "runs" or row["pk"] not in gone:
                words.update(_HASH.findall(row["body"]))
    certain = {bytes.fromhex(each) for each in _of_files(database, gone)}
    snapshots, unreadable = set(), []
    for row in database.execute("SELECT id, manifest, created_at FROM snapshots"):
        if row["id"] not in words and row["created_at"] < newer_than:
            continue
        snapshots.add(row["id"])
        certain.add(bytes.fromhex(row["manifest"]))
        try:
            certain.update(bytes.fromhex(digest) for _, digest, *_ in json.loads(read(row["manifest"])))
        except Exception:  # whatever is wrong with it, doctor says it
            unreadable.append(row["id"])
    blobs = certain | {bytes.fromhex(each) for each in words}
    return Names(frozenset(snapshots), frozenset(blobs), frozenset(certain), tuple(unreadable))


def _of_files(database: sqlite3.Connection, gone: frozenset[int]) -> Iterator[str]:
    """The files of runs and of models."""
    for row in database.execute("SELECT run_pk, hash FROM run_files WHERE hash IS NOT NULL"):
        if row["run_pk"] not in gone:
            yield row["hash"]
    for row in database.execute("SELECT body FROM assets WHERE kind = 'model'"):
        yield from (file["hash"] for file in json.loads(row["body"]).get("files", ()))
