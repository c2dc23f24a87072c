"""Looks over a home: says what is wrong, with which file, and what to do now. Repairs what can be repaired safely."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from lapis.domain import in_words, packs
from lapis.domain.settings import Settings
from lapis.errors import AzureMLException, UserErrorException
from lapis.machine import json_files, processes
from lapis.machine.commands import Tell, silent
from lapis.upkeep import alone, contents
from lapis.upkeep.blob_files import blob_reader, loose, packs_of
from lapis.upkeep.naming import names_in, view_of
from lapis.upkeep.salvage import salvage

OK, NOTE, WRONG = "ok", "note", "wrong"
_LITTLE = 1 << 30  # bytes of a disk
_SECRETS = ("token", "secrets.key", contents.DATABASE)
_SHOWN = 5


@dataclass
class Finding:
    subject: str
    level: str
    what: str
    now: str = ""  # what to do
    fix: Callable[[], str] | None = field(default=None, repr=False)  # says what it did


def examine(settings: Settings, deep: bool = False, tell: Tell = silent) -> Iterator[Finding]:
    home = settings.home
    if os.path.exists(home) and not os.path.isdir(home):
        yield Finding("home", WRONG, f"{home} is no folder.", "Set LAPIS_HOME to one, or move that file away.")
        return
    if not os.path.isdir(home):
        yield Finding("home", NOTE, f"{home} is not there yet: the first call makes it.")
        return
    yield from _permissions(home)
    yield _room(home)
    yield _server(settings)
    if not os.path.exists(os.path.join(home, contents.DATABASE)):
        yield Finding("database", NOTE, f"{home} has no database: nothing was ever stored here.")
        return
    tell("Checking the database ...")
    database = _database(home)
    yield database
    if database.level == WRONG:
        return  # what names what cannot be told
    yield from _blobs(home, deep, tell)
    yield _live(home)


def _permissions(home: str) -> Iterator[Finding]:
    found = False
    for path, most in ((home, 0o700), *((os.path.join(home, name), 0o600) for name in _SECRETS)):
        if not os.path.exists(path):
            continue
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & ~most:
            found = True

            def fix(path: str = path, most: int = most) -> str:
                os.chmod(path, most)
                return f"{path} has mode {most:o} now."

            yield Finding(
                "permissions", WRONG, f"Others can read {path}: its mode is {mode:o}.", f"chmod {most:o}", fix
            )
    if not found:
        yield Finding("permissions", OK, "The home is its owner's alone.")


def _room(home: str) -> Finding:
    usage = shutil.disk_usage(home)
    said = f"{in_words.size(usage.free)} of {in_words.size(usage.total)} are free."
    if usage.free < _LITTLE:
        return Finding("disk", WRONG, said, "Free some space: `lapis gc`, `lapis env prune --keep 0`.")
    return Finding("disk", OK, said)


def _server(settings: Settings) -> Finding:
    about = json_files.read(settings.address_file)
    if about is None:
        return Finding("server", OK, f"None runs; one starts by itself when it is needed.{_port_said(settings.home)}")
    if processes.started(int(about.get("pid", 0))) is not None:
        return Finding("server", OK, f"Release {about.get('version')} runs at {about.get('url')}.")

    def fix() -> str:
        os.remove(settings.address_file)
        return f"{settings.address_file} is gone."

    what = f"{settings.address_file} names a server that is gone: it was killed."
    return Finding("server", NOTE, what, "Nothing: the next one writes its own.", fix)


def _port_said(home: str) -> str:
    """Whether somebody else has the port that links and agents know."""
    try:
        with open(os.path.join(home, "port")) as file:
            port = int(file.read())
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except (ValueError, FileNotFoundError):
        return ""
    except OSError:
        return f" Port {port}, which it had, is another's now: it takes a free one, and old links lead nowhere."
    return ""


def _database(home: str) -> Finding:
    path = os.path.join(home, contents.DATABASE)

    def fix() -> str:
        with alone.without_server(home, "repairing the database"):
            done = salvage(home)
        lost = ", ".join(f"{count} in {table}" for table, count in done.gaps.items() if count) or "none"
        return (
            f"{sum(done.rows.values()):,} rows were saved; stretches that could not be read: {lost}; {done.orphans} "
            f"rows went with what they belonged to. The damaged database is {done.aside}."
        )

    now = "`lapis stop`, then `lapis doctor --fix` saves what can be read; or `lapis restore` a backup elsewhere."
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30.0)) as connection:
            faults = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
            if faults == ["ok"]:
                faults = [f"a row of {row[0]} belongs to none of {row[2]}" for row in _torn(connection)]
            if not faults:
                (schema,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
                return Finding("database", OK, f"{path} is whole (schema {schema}, SQLite {sqlite3.sqlite_version}).")
    except (sqlite3.DatabaseError, TypeError) as error:
        faults = [str(error)]
    return Finding("database", WRONG, f"{path} is damaged: {faults[0]}.", now, fix)


def _torn(connection: sqlite3.Connection) -> list[tuple[str, int, str, int]]:
    return connection.execute("PRAGMA foreign_key_check").fetchmany(20)


def _blobs(home: str, deep: bool, tell: Tell) -> Iterator[Finding]:
    with alone.copying(home), view_of(os.path.join(home, contents.DATABASE)) as database:
        names = names_in(database, blob_reader(home))
        packed = packs_of(home)
        missing = [
            digest
            for digest in (each.hex() for each in names.certain)
            if digest not in packed and not os.path.exists(loose(home, digest))
        ]
        for snapshot in names.unreadable[:_SHOWN]:
            yield Finding("blobs", WRONG, f"The list of files of snapshot {snapshot} cannot be read.", _SEND_AGAIN)
        for digest in missing[:_SHOWN]:
            whose = _whose(database, digest)
            yield Finding("blobs", WRONG, f"Blob {digest} is missing, of {whose}.", _SEND_AGAIN)
        if len(missing) > _SHOWN:
            yield Finding("blobs", WRONG, f"{len(missing) - _SHOWN} more blobs are missing.", _SEND_AGAIN)
        if not missing and not names.unreadable:
            yield Finding("blobs", OK, f"All {len(names.certain):,} blobs that something names are there.")
        if deep:
            tell("Reading every blob ...")
            yield from _damaged_blobs(home, database)


_SEND_AGAIN = "Submit or register it again: what is missing is sent anew. Or restore a backup."


def _whose(database: sqlite3.Connection, digest: str) -> str:
    row = database.execute(
        "SELECT id, name FROM run_files JOIN runs ON runs.pk = run_pk WHERE hash = ? LIMIT 1", (digest,)
    ).fetchone()
    if row is not None:
        return f"file '{row['name']}' of run {row['id']}"
    row = database.execute("SELECT kind, name, version FROM assets WHERE instr(body, ?) LIMIT 1", (digest,)).fetchone()
    return f"{row['kind']} {row['name']}:{row['version']}" if row is not None else "a snapshot"


def _damaged_blobs(home: str, database: sqlite3.Connection) -> Iterator[Finding]:
    root, count = os.path.join(home, "blobs"), 0
    for folder in _entries(root):
        for entry in _entries(folder.path) if len(folder.name) == 2 else ():
            count += 1
            if _hash(entry.path) == folder.name + entry.name:
                continue

            def fix(path: str = entry.path, digest: str = folder.name + entry.name) -> str:
                aside = os.path.join(root, "damaged", digest)
                os.makedirs(os.path.dirname(aside), exist_ok=True)
                os.replace(path, aside)
                return f"It counts as missing now, and lies in {aside}."

            whose = _whose(database, folder.name + entry.name)
            what = f"Blob {folder.name + entry.name}, of {whose}, is damaged: its bytes are not those that were stored."
            yield Finding("blobs", WRONG, what, _SEND_AGAIN, fix)
    for entry in _entries(os.path.join(root, "packs")):
        count += 1
        fault = _pack_fault(entry.path)
        if fault:
            yield Finding("blobs", WRONG, f"Pack {entry.name} is damaged: {fault}.", _SEND_AGAIN)
    yield Finding("blobs", OK, f"{count:,} files of blobs were read.")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    found = os.scandir(folder) if os.path.isdir(folder) else ()
    return sorted(found, key=lambda entry: entry.name)


def _pack_fault(path: str) -> str:
    try:
        with open(path, "rb") as file:
            for digest, (start, size) in packs.read_places(file).items():
                file.seek(start)
                if hashlib.sha256(file.read(size)).hexdigest() != digest:
                    return f"the bytes of blob {digest} are not those that were stored"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _live(home: str) -> Finding:
    """Logs that lie open although no run goes on that writes them."""
    root = os.path.join(home, "live")
    with view_of(os.path.join(home, contents.DATABASE)) as database:
        going = {(row["workspace_id"], row["id"]) for row in database.execute(
            "SELECT workspace_id, id FROM runs WHERE ended = 0"
        )}  # fmt: skip
    left = [
        (workspace_id, run_id)
        for workspace_id in (os.listdir(root) if os.path.isdir(root) else ())
        for run_id in os.listdir(os.path.join(root, workspace_id))
        if (workspace_id, run_id) not in going
    ]
    if left:
        return Finding("logs", NOTE, f"{len(left)} logs lie open whose runs have ended.", "`lapis gc` puts them away.")
    return Finding("logs", OK, "No log lies open whose run has ended.")


def mended(finding: Finding) -> str | None:
    """Repair it, if that can be done; what was done, or why it could not be."""
    if finding.fix is None:
        return None
    try:
        return finding.fix()
    except AzureMLException as error:
        return f"Not repaired: {error.message}"
    except (OSError, sqlite3.DatabaseError, UserErrorException) as error:
        return f"Not repaired: {error}"
