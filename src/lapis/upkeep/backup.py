"""A backup of a home while it is at work: the database as of one moment, and everything that it names.

A folder is brought up to date by the next backup into it: of blobs, which never change, only new ones are copied.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from lapis.errors import UserErrorException
from lapis.machine import rotation
from lapis.machine.commands import Tell, silent
from lapis.machine.paths import is_within
from lapis.upkeep import alone, contents
from lapis.upkeep.backup_places import MARKER, File, Folder, Kept, Target, is_backup
from lapis.upkeep.blob_files import blob_reader, loose, packs_of
from lapis.upkeep.naming import names_in, view_of
from lapis.version import VERSION

FORMAT = 1
_COMPRESSED = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip")


@dataclass
class Done:
    files: dict[str, Kept] = field(default_factory=dict)
    copied: int = 0  # bytes
    missing: list[str] = field(default_factory=list)  # blobs that are named and not there

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files.values())


def back_up(home: str, place: str, tell: Tell = silent) -> Done:
    """Write a backup of `home` to a folder, or to one file if `place` ends with .tar or is a file."""
    if not os.path.exists(os.path.join(home, contents.DATABASE)):
        raise UserErrorException(f"There is nothing to back up: {home} has no database.")
    if is_within(place, home):
        raise UserErrorException(f"{place} lies in the home itself ({home}). A backup belongs on another disk.")
    as_file = place.endswith(".tar") or os.path.isfile(place)
    if not place or (not as_file and place.endswith(_COMPRESSED)):
        raise UserErrorException(f"A backup is a folder, or a file that ends with .tar: {place!r} is neither.")
    if not _may_be_written(place):
        raise UserErrorException(
            f"{place} is no backup and not empty. Name a new folder, or a file that ends with .tar."
        )
    with alone.copying(home), tempfile.TemporaryDirectory(prefix="lapis-backup-") as scratch:
        tell("Copying the database ...")
        copy = os.path.join(scratch, contents.DATABASE)
        _copy_database(os.path.join(home, contents.DATABASE), copy)
        if as_file:
            with File(place) as target:
                return _written(home, copy, target, tell)
        return _written(home, copy, Folder(place), tell)


def _may_be_written(place: str) -> bool:
    """Whether nothing is lost there but an earlier backup."""
    if os.path.isdir(place):
        return not os.listdir(place) or os.path.exists(os.path.join(place, MARKER))
    return not os.path.exists(place) or (os.path.isfile(place) and (os.path.getsize(place) == 0 or is_backup(place)))


def _copy_database(source: str, target: str) -> None:
    """By SQLite's own way for a database that is written meanwhile: as of one moment."""
    with closing(sqlite3.connect(target)) as copy:
        os.chmod(target, 0o600)
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30.0)) as original:
            original.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file


def _written(home: str, copy: str, target: Target, tell: Tell) -> Done:
    done = Done()

    def put(name: str, path: str, known: bool = False) -> bool:
        try:
            with open(path, "rb") as file:
                given_up = rotation.first_byte(file.fileno()) if name.startswith("live/") else 0
                size = os.fstat(file.fileno()).st_size - file.seek(given_up)
                there = target.has(name, size) if known else None
                done.files[name] = Kept(size, there) if there else target.put(name, file, size)
                done.copied += 0 if there else size
        except FileNotFoundError:
            return False
        return True

    put(contents.DATABASE, copy)
    with view_of(copy) as database:
        names = names_in(database, blob_reader(home))
        growing = [(row["workspace_id"], row["id"], row["name"]) for row in database.execute(_GROWING)]
    tell(f"Copying {len(names.blobs):,} blobs ...")
    in_pack = packs_of(home)
    for digest in sorted(each.hex() for each in names.blobs):
        path = in_pack.get(digest) or loose(home, digest)
        name = os.path.relpath(path, home)
        if name not in done.files and not put(name, path, known=True) and bytes.fromhex(digest) in names.certain:
            done.missing.append(digest)
    for workspace_id, run_id, log in growing:
        name = f"live/{workspace_id}/{run_id}/{log}"
        if not put(name, os.path.join(home, name)):  # sealed since the database was copied
            _put_sealed(home, (workspace_id, run_id, log), lambda path, name=name: put(name, path))  # type: ignore[misc]
    for name in contents.plain_files(home):
        put(name, os.path.join(home, name))
    about = {
        "format": FORMAT,
        "version": VERSION,
        "created_at": time.time(),
        "files": {name: list(kept) for name, kept in sorted(done.files.items())},
    }
    target.finish(json.dumps(about, indent=0).encode())
    return done


_GROWING = (
    "SELECT workspace_id, id, name FROM run_files JOIN runs ON runs.pk = run_pk WHERE hash IS NULL AND alias_of IS NULL"
)


def _put_sealed(home: str, log: tuple[str, str, str], put: Callable[[str], object]) -> None:
    """A log that grew when the database was copied is a blob by now: the backup has it as it is."""
    with view_of(os.path.join(home, contents.DATABASE)) as database:
        row = database.execute(
            "SELECT hash FROM run_files JOIN runs ON runs.pk = run_pk WHERE workspace_id = ? AND id = ? AND name = ?",
            log,
        ).fetchone()
    if row is not None and row["hash"] is not None:
        put(loose(home, row["hash"]))
