"""Keeps which files a run has, and the ones that still grow while it runs."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.run_file import RunFile, beside, stored_beside
from lapis.domain.tree import resolve_under
from lapis.errors import NotFound, StorageFull
from lapis.machine import on_disk, rotation, whole_files
from lapis.server.store.blobs import BlobFolder
from lapis.server.store.collected import size_of
from lapis.server.store.database import Database
from lapis.server.store.tables import run_files, runs


class FileStore:
    """A file is a blob, or grows under `live/<workspace>/<run>/` until the run ends and it is sealed into one."""

    def __init__(self, database: Database, blobs: BlobFolder, live: str) -> None:
        self._database = database
        self._blobs = blobs
        self._live = live
        self._appending = threading.Lock()
        os.makedirs(live, exist_ok=True)

    def find(self, workspace_id: str, run_id: str) -> list[RunFile]:
        with self._database.read() as connection:
            query = select(run_files).where(run_files.c.run_pk == _run_pk(connection, workspace_id, run_id))
            rows = connection.execute(query.order_by(run_files.c.name)).all()
        return [self._with_size(workspace_id, run_id, _to_file(row)) for row in rows]

    def get(self, workspace_id: str, run_id: str, name: str) -> RunFile:
        return self._with_size(workspace_id, run_id, self._row(workspace_id, run_id, name))

    def put(self, workspace_id: str, run_id: str, files: dict[str, tuple[str, int]], at: float) -> None:
        """Name blobs as files of the run. A name that exists is replaced."""
        if not files:
            return
        with self._database.write() as connection:
            pk = _run_pk(connection, workspace_id, run_id)
            for name, (digest, size) in files.items():
                row = {"hash": digest, "size": size, "created_at": at, "alias_of": None}
                connection.execute(
                    upsert(run_files)
                    .values(run_pk=pk, name=name, **row)
                    .on_conflict_do_update(index_elements=["run_pk", "name"], set_=row)
                )

    def put_collected(
        self, workspace_id: str, run_id: str, files: dict[str, tuple[str, int, str]], at: float
    ) -> list[str]:
        """The same of what was found in the run's folders, each with the hash that it may replace: one that it has not
        was uploaded, and stays. What comes then is stored beside it; what is to be said of that."""
        if not files:
            return []
        notices, named = [], {}
        with self._database.write() as connection:
            pk = _run_pk(connection, workspace_id, run_id)
            query = select(run_files.c.name, run_files.c.hash).where(run_files.c.run_pk == pk)
            there = {row.name: row.hash for row in connection.execute(query.where(run_files.c.name.in_(files)))}
            for name, (digest, size, replaces) in files.items():
                free = there.get(name) in (None, digest, replaces)
                named[name if free else beside(name)] = (digest, size)
                if not free:
                    notices.append(stored_beside(name))
            self.put(workspace_id, run_id, named, at)
        return notices

    def append(
        self,
        workspace_id: str,
        run_id: str,
        name: str,
        offset: int,
        data: memoryview,
        at: float,
        aliases: tuple[str, ...],
        anew: bool = False,
    ) -> int:
        """Let a file grow; give the length reached. Bytes it has already are not written again, a gap is not made.

        With `anew` it begins again: its writer has emptied or replaced it.
        """
        path = self._path(workspace_id, run_id, name)
        if not os.path.exists(path):  # it begins, or has ended
            name = self.growing_name(workspace_id, run_id, name)
            path = self._path(workspace_id, run_id, name)
        with self._appending:
            try:
                length = os.path.getsize(path)
            except FileNotFoundError:
                if self._takes_no_more(workspace_id, run_id, name):
                    return offset + len(data)
                self._begin(workspace_id, run_id, name, at, aliases)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                length = 0
            if anew and length:
                os.truncate(path, 0)
                length = 0
            if offset > length:
                return length
            fresh = data[length - offset :]
            if len(fresh) or length == 0:
                _append_all(path, fresh, length)
            return max(length, offset + len(data))

    def growing_name(self, workspace_id: str, run_id: str, name: str) -> str:
        """The name by which a log grows: its own, or one beside a file that somebody uploaded under that."""
        if os.path.exists(self._path(workspace_id, run_id, name)):
            return name
        with self._database.read() as connection:
            pk = _run_pk(connection, workspace_id, run_id)
            query = select(run_files.c.hash).join(runs, runs.c.pk == run_files.c.run_pk).where(runs.c.pk == pk)
            uploaded = connection.execute(query.where(run_files.c.name == name, runs.c.ended == 0)).scalar() is not None
        return beside(name) if uploaded else name

    def read(self, workspace_id: str, run_id: str, file: RunFile, start: int = 0) -> Iterator[bytes]:
        """The file's bytes from `start`, as far as they go now. What cannot be read is said before the first."""
        growing = file.alias_of or file.name
        if file.hash:
            return self._blobs.read(file.hash, start)
        try:
            live = open(self._path(workspace_id, run_id, growing), "rb")
            return _chunks(live, max(start, rotation.first_byte(live.fileno())))
        except FileNotFoundError:  # it grew a moment ago and was sealed meanwhile
            fresh = self.get(workspace_id, run_id, file.name)
            if fresh.hash is None:
                raise NotFound(f"The bytes of '{file.name}' of run {run_id} are not there any more.") from None
            return self._blobs.read(fresh.hash, start)

    def settle(self, workspace_id: str, run_id: str) -> None:
        """Wait until all that a run handed over is on the disk: what grows, and blobs."""
        for folder, _, names in os.walk(os.path.join(self._live, workspace_id, run_id)):
            for name in names:
                on_disk.settle(os.path.join(folder, name))
        self._blobs.settle()

    def give_up_beginning(self, workspace_id: str, run_id: str, name: str) -> None:
        """Of a log that never ends only the last part is kept. Positions in it stay what they are."""
        with self._appending:
            rotation.give_up_beginning(self._path(workspace_id, run_id, name))

    def seal(self, workspace_id: str, run_id: str) -> None:
        """The run has ended: what grew becomes blobs. May be repeated after a crash half way."""
        root = os.path.join(self._live, workspace_id, run_id)
        if not os.path.isdir(root):
            return
        with self._appending:
            for folder, _, names in os.walk(root):
                for leaf in names:
                    path = os.path.join(folder, leaf)
                    name = os.path.relpath(path, root).replace(os.sep, "/")
                    _close_gap(path)
                    digest, size = self._blobs.adopt(path)
                    with self._database.write() as connection:
                        pk = _run_pk(connection, workspace_id, run_id)
                        connection.execute(
                            update(run_files)
                            .where(run_files.c.run_pk == pk)
                            .where((run_files.c.name == name) | (run_files.c.alias_of == name))
                            .values(hash=digest, size=size)
                        )
            self._blobs.settle()
            self._database.settle()
            shutil.rmtree(root, ignore_errors=True)  # only now: until then a power cut finds the one or the other

    def unsealed(self) -> list[tuple[str, str]]:
        return [
            (workspace_id, run_id)
            for workspace_id in os.listdir(self._live)
            for run_id in os.listdir(os.path.join(self._live, workspace_id))
        ]

    def size_of_live(self, workspace_id: str, run_id: str) -> int:
        """What its growing files take on the disk."""
        return size_of(os.path.join(self._live, workspace_id, run_id))

    def forget(self, workspace_id: str, run_id: str) -> None:
        shutil.rmtree(os.path.join(self._live, workspace_id, run_id), ignore_errors=True)

    def _path(self, workspace_id: str, run_id: str, name: str) -> str:
        return resolve_under(os.path.join(self._live, workspace_id, run_id), name)

    def _begin(self, workspace_id: str, run_id: str, name: str, at: float, aliases: tuple[str, ...]) -> None:
        with self._database.write() as connection:
            pk = _run_pk(connection, workspace_id, run_id)
            for each in (name, *aliases):
                alias_of = None if each == name else name
                row = {"hash": None, "size": 0, "created_at": at, "alias_of": alias_of}
                connection.execute(
                    upsert(run_files)
                    .values(run_pk=pk, name=each, **row)
                    .on_conflict_do_update(index_elements=["run_pk", "name"], set_=row)
                )

    def _takes_no_more(self, workspace_id: str, run_id: str, name: str) -> bool:
        """Whether these bytes were taken before and are sealed, or the run has ended: nobody would seal them."""
        with self._database.read() as connection:
            pk = _run_pk(connection, workspace_id, run_id)
            query = select(run_files.c.hash).where(run_files.c.run_pk == pk, run_files.c.name == name)
            sealed = connection.execute(query).scalar() is not None
            return sealed or bool(connection.execute(select(runs.c.ended).where(runs.c.pk == pk)).scalar())

    def _with_size(self, workspace_id: str, run_id: str, file: RunFile) -> RunFile:
        if file.hash is not None:
            return file
        try:
            size = os.path.getsize(self._path(workspace_id, run_id, file.alias_of or file.name))
        except FileNotFoundError:  # it has hardly begun, or was sealed since the row was read
            return self._row(workspace_id, run_id, file.name)
        return replace(file, size=size)

    def _row(self, workspace_id: str, run_id: str, name: str) -> RunFile:
        with self._database.read() as connection:
            pk = _run_pk(connection, workspace_id, run_id)
            query = select(run_files).where(run_files.c.run_pk == pk, run_files.c.name == name)
            row = connection.execute(query).first()
        if row is None:
            raise NotFound(f"Run {run_id} has no file named '{name}'. get_file_names() lists what it has.")
        return _to_file(row)


def _close_gap(path: str) -> None:
    """What was given up of a log is no part of the file that stays."""
    with open(path, "rb") as file:
        first = rotation.first_byte(file.fileno())
        if not first:
            return
        with whole_files.replacing(path) as draft, open(draft, "wb") as kept:
            kept.write(f"[Lapis: the first {first:,} bytes of this log were given up]\n".encode())
            file.seek(first)
            shutil.copyfileobj(file, kept, 1 << 20)


def _chunks(file: BinaryIO, start: int) -> Iterator[bytes]:
    with file:
        file.seek(start)
        while chunk := file.read(1 << 20):
            yield chunk


def _append_all(path: str, data: memoryview, length: int) -> None:
    try:
        with open(path, "ab", buffering=0) as file:
            try:
                while len(data):
                    data = data[file.write(data) :]
            except OSError:
                os.truncate(path, length)  # all of it or nothing, so that the length stays what was acknowledged
                raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("The server's disk is full: the log is kept by its sender and comes again.") from error
        raise


def _run_pk(connection: Connection, workspace_id: str, run_id: str) -> int:
    pk = connection.execute(select(runs.c.pk).where(runs.c.workspace_id == workspace_id, runs.c.id == run_id)).scalar()
    if pk is None:
        raise NotFound(f"No run with id '{run_id}' in this workspace.")
    return int(pk)


def _to_file(row: Any) -> RunFile:
    return RunFile(row.name, row.size, row.created_at, row.hash, row.alias_of)
