"""Brings a backup back into an empty home: every file checked against its hash before any of it counts."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from typing import BinaryIO, NamedTuple

from lapis.domain import run as rules
from lapis.domain import standing
from lapis.domain.run import RunRecord, RunState
from lapis.errors import Conflict, UserErrorException
from lapis.machine.commands import Tell, silent
from lapis.upkeep import alone, contents
from lapis.upkeep.backup_places import MANIFEST, MARKER, Kept, copied, listed

INTERRUPTED = "It was under way when the backup was made that this home was restored from"


class Restored(NamedTuple):
    files: int
    size: int  # bytes
    interrupted: int  # runs that were under way when the backup was made


def restore(place: str, home: str, tell: Tell = silent) -> Restored:
    """Nothing is left behind if anything is wrong with the backup."""
    draft = os.path.join(home, "restoring")
    if contents.is_used(home) and not _was_cut_off(home, draft):
        raise Conflict(
            f"{home} holds runs already, and a backup is restored into an empty home only. Set LAPIS_HOME to another "
            "folder."
        )
    if not os.path.exists(place):
        raise UserErrorException(f"There is no backup at {place}.")
    with ExitStack() as stack:
        stack.enter_context(alone.without_server(home, "restoring a backup"))
        if _was_cut_off(home, draft):
            _remove(home, contents.OF_RUNS)
        shutil.rmtree(draft, ignore_errors=True)
        os.makedirs(draft, mode=0o700)
        stack.callback(shutil.rmtree, draft, ignore_errors=True)
        files = _unpack(place, draft, tell)
        interrupted = _end_what_was_under_way(os.path.join(draft, contents.DATABASE))
        _move_in(draft, home)
    return Restored(len(files), sum(kept.size for kept in files.values()), interrupted)


def _was_cut_off(home: str, draft: str) -> bool:
    """Whether what is in this home is part of a backup, which was not brought to its end."""
    return os.path.isdir(draft) and not os.path.exists(os.path.join(home, contents.DATABASE))


def _remove(home: str, names: Iterable[str]) -> None:
    for path in (os.path.join(home, name) for name in names):
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)


def _unpack(place: str, draft: str, tell: Tell) -> dict[str, Kept]:
    tell(f"Restoring {place} ...")
    found: dict[str, Kept] = {}
    manifest = None
    try:
        for name, file, size in _members(place):
            if name == MANIFEST:
                manifest = listed(json.loads(file.read()))
            elif name != MARKER:
                found[name] = _copy_in(file, size, _place(draft, name))
    except (tarfile.TarError, ValueError, EOFError, OSError) as error:
        raise UserErrorException(f"The backup {place} cannot be read: {error}. Nothing was restored.") from error
    if manifest is None:
        raise UserErrorException(
            f"The backup {place} was cut off: it has no {MANIFEST}, which is written last. Nothing was restored."
        )
    for name, kept in manifest.items():
        if found.get(name) != kept:
            what = "is lacking" if name not in found else "is damaged: its hash is not the one it was stored with"
            raise UserErrorException(f"'{name}' of the backup {place} {what}. Nothing was restored.")
    if contents.DATABASE not in manifest:
        raise UserErrorException(f"The backup {place} holds no database. Nothing was restored.")
    for name in found.keys() - manifest.keys():  # nobody says what it should be
        os.remove(os.path.join(draft, name))
    return manifest


def _members(place: str) -> Iterator[tuple[str, BinaryIO, int]]:
    if os.path.isdir(place):
        for at, _, names in os.walk(place):
            for name in names:
                path = os.path.join(at, name)
                with open(path, "rb") as file:
                    yield os.path.relpath(path, place), file, os.fstat(file.fileno()).st_size
        return
    with tarfile.open(place, "r|") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, content, member.size  # type: ignore[misc]


def _place(draft: str, name: str) -> str:
    """Files have the names that they had, which need not be those that Lapis gives; but none leads out."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"no file of a backup is called {name!r}")
    return os.path.join(draft, name)


def _copy_in(file: BinaryIO, size: int, path: str) -> Kept:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
        kept = copied(file, copy, size)
        copy.flush()
        os.fsync(copy.fileno())
    return kept


def _end_what_was_under_way(path: str) -> int:
    """What agents had on disk is in no backup: their runs have failed, and do not begin anew. Queued runs start when a
    server does, and services in runs of their own."""
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("SELECT * FROM runs WHERE minded = 'launched'").fetchall()
        for row in rows:
            record = RunRecord.from_json({**json.loads(row["body"]), **{key: row[key] for key in _COLUMNS}})
            error = {"code": "Interrupted", "message": f"{INTERRUPTED}. Submit it again."}
            ended = rules.end(record, RunState.FAILED, reason=INTERRUPTED, at=time.time(), error=error).to_json()
            body = {key: value for key, value in ended.items() if key not in _COLUMNS}
            database.execute(
                "UPDATE runs SET state = ?, ended = 1, minded = NULL, body = ? WHERE pk = ?",
                (ended["state"], json.dumps(body), row["pk"]),
            )
            if "standing" in row.keys():  # a backup of an earlier release has none yet
                database.execute(f"UPDATE runs SET standing = {standing.SQL} WHERE pk = ?", (row["pk"],))
        database.commit()
    return len(rows)


_COLUMNS = ("workspace_id", "id", "parent_id", "root_id", "type", "target", "state", "created_at", "archived_at",
            "last_heard", "revision")  # fmt: skip


def _move_in(draft: str, home: str) -> None:
    """The database last: a home is one when it is there."""
    last = contents.DATABASE
    for name in sorted(os.listdir(draft), key=lambda name: name == last):
        target = os.path.join(home, name)
        if os.path.isdir(target):  # made by a command for itself, with nothing of a home in it
            shutil.copytree(os.path.join(draft, name), target, dirs_exist_ok=True)
        else:
            os.replace(os.path.join(draft, name), target)
    descriptor = os.open(home, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
