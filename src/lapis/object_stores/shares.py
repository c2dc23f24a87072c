"""A file share, spoken to over SMB: what `stores.py` asks of a file system, and no more.

fsspec's own file system for SMB keeps one connection per host for the whole process, with whoever came first logged on,
and leaves out of a listing what it may not list. Here each store has connections of its own, and an error is one.
"""

from __future__ import annotations

import contextlib
import errno
import stat
import threading
import time
import uuid
import weakref
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import smbclient
from smbprotocol.connection import Connection
from smbprotocol.exceptions import (
    AccessDenied,
    SharingViolation,
    SMBAuthenticationError,
    SMBConnectionClosed,
    SMBException,
    SMBOSError,
    SMBResponseException,
)
from smbprotocol.file_info import FileRenameInformation
from smbprotocol.header import NtStatus
from smbprotocol.open import FilePipePrinterAccessMask as May
from smbprotocol.open import SMB2SetInfoRequest

_UNFINISHED = ".lapis-unfinished-"  # a file under such a name is still being written, or was when somebody was killed
_PIECE = 1 << 20
_ANSWER_SECONDS = 60.0
_1970 = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - users' interpreters may be older
_WRITE_AND_RENAME = May.FILE_WRITE_DATA | May.FILE_WRITE_ATTRIBUTES | May.FILE_READ_ATTRIBUTES | May.DELETE
_NO_ENTRY = {
    NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, NtStatus.STATUS_OBJECT_PATH_NOT_FOUND, NtStatus.STATUS_NOT_FOUND,
    NtStatus.STATUS_NOT_A_DIRECTORY,
}  # fmt: skip
_CANNOT_ENCRYPT = "that it cannot encrypt; encrypt=False (protocol='http' for an Azure share) does without"
# What may not stand in a name over SMB is kept as the sign that Linux and macOS put for it when they mount a share.
_SIGNS = {ord(char): 0xF020 + number for number, char in enumerate('"*:<>?\\|')}
_LAST_SIGNS = {" ": "\uf028", ".": "\uf029"}  # at the end of a name
_CHARS = {**{sign: chr(char) for char, sign in _SIGNS.items()}, 0xF028: " ", 0xF029: "."}


class ShareError(OSError):
    """What the server said, as its own word for it: `STATUS_LOGON_FAILURE`."""

    def __init__(self, number: int, code: str) -> None:
        super().__init__(number, code)
        self.error_code = code


class _Connection(Connection):  # type: ignore[misc]
    """One whose server is not waited for without end."""

    def receive(
        self, request: Any, wait: bool = True, timeout: float | None = None, resolve_symlinks: bool = True
    ) -> Any:
        return super().receive(request, wait, timeout or _ANSWER_SECONDS, resolve_symlinks)


class ShareFileSystem:
    """Paths are `share/folder/file`. Connects at the first call; safe to share between threads."""

    def __init__(self, host: str, port: int, user: str, password: str, encrypt: bool, timeout: float) -> None:
        self._host = host
        self._how: dict[str, Any] = {
            "username": user,
            "password": password,
            "port": port,
            "encrypt": encrypt or None,  # None: as the server wants it
            "connection_timeout": timeout,
            "auth_protocol": "ntlm",
        }
        self._free: list[dict[str, Any]] = []
        self._made: list[dict[str, Any]] = []
        weakref.finalize(self, _hang_up, self._made).atexit = False

    def ls(self, path: str) -> list[dict[str, Any]]:
        """Its files and folders; one that is not there is an error."""
        with self._connection() as how:
            with smbclient.scandir(self._unc(path), **how) as entries:
                found = [(e.name, e.is_dir(), e.smb_info) for e in entries if not e.name.startswith(_UNFINISHED)]
        return [
            _row(f"{path}/{_shown(name)}", is_folder, facts.end_of_file, facts.last_write_time, facts.change_time)
            for name, is_folder, facts in found
        ]

    def find(self, path: str, detail: bool = True) -> dict[str, dict[str, Any]]:
        """All files below a folder."""
        found: dict[str, dict[str, Any]] = {}
        folders = [path]
        while folders:
            for row in self.ls(folders.pop()):
                if row["type"] == "directory":
                    folders.append(row["name"])
                else:
                    found[row["name"]] = row
        return found

    def info(self, path: str) -> dict[str, Any]:
        with self._connection() as how:
            facts = smbclient.stat(self._unc(path), **how)
        times = _time(facts.st_mtime_ns), _time(facts.st_chgtime_ns)
        return _row(path, stat.S_ISDIR(facts.st_mode), facts.st_size, *times)

    def cat_ranges(
        self, paths: Sequence[str], starts: Sequence[int], ends: Sequence[int], on_error: str = "raise"
    ) -> list[bytes]:
        """Parts of one file."""
        with self._connection() as how:
            with smbclient.open_file(self._unc(paths[0]), "rb", buffering=0, share_access="rwd", **how) as file:
                return [_part(file, begin, end) for begin, end in zip(starts, ends, strict=True)]

    def open(self, path: str, mode: str = "rb") -> Any:
        """A file to read, with a connection that nobody else uses."""
        with _told():
            how = self._connected(self._new())
            return smbclient.open_file(self._unc(path), mode, buffering=_PIECE, share_access="rwd", **how)

    def put_file(self, local: str, path: str) -> None:
        """Written beside, and renamed once it is whole."""
        folder = path.rpartition("/")[0]
        unfinished = f"{self._unc(folder)}\\{_UNFINISHED}{uuid.uuid4().hex}"
        with self._connection() as how, open(local, "rb") as source:
            if "/" in folder:
                smbclient.makedirs(self._unc(folder), exist_ok=True, **how)
            with smbclient.open_file(
                unfinished, "xb", buffering=0, share_access="rwd", desired_access=_WRITE_AND_RENAME, **how
            ) as file:
                try:
                    _write(file, source)
                    _rename(file, self._unc(path).split("\\", 4)[4])
                except BaseException:
                    file.close()
                    with contextlib.suppress(Exception):
                        smbclient.remove(unfinished, **how)
                    raise

    @contextlib.contextmanager
    def _connection(self) -> Iterator[dict[str, Any]]:
        """How to call smbclient, on a connection that no other thread uses meanwhile: the library miscounts then."""
        try:
            cache = self._free.pop()
        except IndexError:
            cache = self._new()
        try:
            with _told():
                yield self._connected(cache)
        finally:
            self._free.append(cache)

    def _connected(self, cache: dict[str, Any]) -> dict[str, Any]:
        """With a connection of its own client: Samba may leave one unanswered that comes beside another of the same."""
        name = f"{self._host.lower()}:{self._how['port']}"  # smbclient's
        if name not in cache or not cache[name].transport.connected:
            connection = _Connection(uuid.uuid4(), self._host, self._how["port"], require_signing=True)
            connection.connect(timeout=self._how["connection_timeout"])
            cache[name] = connection
        return {**self._how, "connection_cache": cache}

    def _new(self) -> dict[str, Any]:
        self._made.append({})
        return self._made[-1]

    def _unc(self, path: str) -> str:
        return "\\".join(["", "", self._host, *map(_kept, path.strip("/").split("/"))])


def _kept(name: str) -> str:
    """A name as it stands on the share."""
    name = name.translate(_SIGNS)
    return name[:-1] + _LAST_SIGNS[name[-1]] if name[-1:] in _LAST_SIGNS else name


def _shown(name: str) -> str:
    return name.translate(_CHARS)


def _row(path: str, is_folder: bool, size: int, written: datetime, changed: datetime) -> dict[str, Any]:
    kind = "directory" if is_folder else "file"
    mark = f"{written.timestamp():.6f} {changed.timestamp():.6f}"
    return {"name": path, "type": kind, "size": size, "last_modified": written, "etag": mark}


def _time(nanoseconds: int) -> datetime:
    """As a listing has it: to the microsecond."""
    return _1970 + timedelta(microseconds=nanoseconds // 1000)


def _part(file: Any, begin: int, end: int) -> bytes:
    content = bytearray(end - begin)
    file.seek(begin)
    done = 0
    with memoryview(content) as rest:
        while done < len(content):
            came = file.readinto(rest[done : done + _PIECE])
            if not came:
                break  # it is shorter now
            done += came
    return bytes(content[:done])


def _write(file: Any, source: Any) -> None:
    for piece in iter(lambda: source.read(_PIECE), b""):
        rest = memoryview(piece)
        while rest:
            rest = rest[file.write(rest) :]


def _rename(file: Any, path: str) -> None:
    """Give an open file its name, in place of one that has it. Somebody who reads that one is waited for a little."""
    new = FileRenameInformation()
    new["replace_if_exists"], new["file_name"] = True, path
    request = SMB2SetInfoRequest()
    request["info_type"], request["file_info_class"] = new.INFO_TYPE, new.INFO_CLASS
    request["file_id"], request["buffer"] = file.fd.file_id, new
    tree = file.fd.tree_connect
    for pause in (0.1, 0.2, 0.4, 0.8, None):
        try:
            sent = file.fd.connection.send(request, sid=tree.session.session_id, tid=tree.tree_connect_id)
            file.fd.connection.receive(sent)
            return
        except (AccessDenied, SharingViolation):
            if pause is None:
                raise
            time.sleep(pause)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """The library's errors as Python's own where it has one, else with the server's word for it."""
    try:
        yield
    except SMBOSError as error:
        raise _error(error.ntstatus) from None
    except SMBResponseException as error:
        raise _error(error.status) from None
    except SMBConnectionClosed:
        raise ConnectionResetError("the connection was closed") from None
    except SMBAuthenticationError:
        raise PermissionError("the logon failed") from None
    except SMBException as error:
        if "timeout" in str(error):
            raise TimeoutError("no answer came") from None
        code = _CANNOT_ENCRYPT if "encryption" in str(error) else type(error).__name__
        raise ShareError(errno.EPROTO, code) from None
    except ValueError as error:
        if isinstance(error.__cause__, OSError):  # nobody there
            raise ConnectionError(error.__cause__.strerror) from None
        raise


def _error(status: int) -> OSError:
    code = next((name for name, value in vars(NtStatus).items() if value == status), f"0x{status:08x}")
    if status in _NO_ENTRY:
        return FileNotFoundError(errno.ENOENT, code)
    return ShareError(errno.EIO, code)


def _hang_up(made: list[dict[str, Any]]) -> None:
    """From a thread of its own, as nobody knows which one collects garbage: it may be that of a connection."""
    connections = [connection for cache in made for connection in cache.values()]

    def close() -> None:
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.transport.close()

    threading.Thread(target=close, daemon=True).start()
