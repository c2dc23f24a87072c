"""Brings what a run writes on disk to the server: logs and journals by position, files by content.

Positions make it safe to send anything again: the server takes what is new and says how far it is. So nothing is lost
or doubled when this process, the server or the network dies; the files on disk are the spool. How a run ended is told
together with where each stream ends, and the server takes it only when it has all of them up to there.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, BinaryIO, Callable, Iterator, Mapping

from lapis.client.collected import opened
from lapis.client.http_client import Client, quoted
from lapis.client.streams import Stream, WatchedLog, key_of
from lapis.domain import frames
from lapis.domain.delivery import Losses
from lapis.errors import (
    AuthenticationException,
    Conflict,
    NotFound,
    ServiceException,
    Unavailable,
    UserErrorException,
)
from lapis.machine.shortages import passing

_AT_ONCE = 4 << 20  # bytes of all streams in one report; a journal's line that is longer travels whole
_SMALL = 256 << 10  # files up to this size travel inside a report


class Shipper:
    """Everything of one run that travels by report. One thread uses it at a time."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, resumed: bool = False) -> None:
        self.client = client
        self._runs = f"/workspaces/{workspace_id}/runs/"
        self._run_id = run_id
        self._streams: dict[str, Stream] = {}
        self._resumed = resumed  # somebody was here before: ask how far the server is
        self._turn = 0
        self.stored: dict[str, str] = {}  # files that were collected and sent, by name: the hash of what the server has

    def follow_log(self, name: str, path: str) -> None:
        self._follow(Stream(path, {"kind": "log", "name": name}))

    def watch_log(self, name: str, path: str, root: str) -> None:
        """One that its script may rewrite or replace, and that lies below `root`."""
        self._follow(WatchedLog(path, {"kind": "log", "name": name}, root))

    def follow_journal(self, stream: str, path: str) -> None:
        self._follow(Stream(path, {"kind": "journal", "stream": stream}))

    def _follow(self, stream: Stream) -> None:
        if stream.key not in self._streams:
            stream.position = None if self._resumed else 0
            self._streams[stream.key] = stream

    def behind(self) -> bool:
        return any([stream.behind() for stream in self._streams.values()])  # each has a look

    def paths(self) -> list[str]:
        """The files that grow."""
        return [stream.path for stream in self._streams.values()]

    def backlog(self) -> int:
        """How many bytes the server lacks."""
        self.behind()
        return self.lacks()

    def lacks(self) -> int:
        """The same, as of the last look."""
        return sum(stream.lacks() for stream in self._streams.values())

    def report(self, header: Mapping[str, Any] | None = None, patience: float | None = None) -> dict[str, Any]:
        """One report with what is new of every stream, as far as it fits."""
        return self._send(header or {}, *self._fresh(), patience)

    def settle(self, patience: float | None = None) -> tuple[dict[str, int], Losses]:
        """Where each stream ends, as nothing more is to come; and what cannot be brought in of them."""
        if any(stream.position is None for stream in self._streams.values()):
            self.report(patience=patience)
        ends, losses = {}, Losses()
        for stream in self._streams.values():
            ends[stream.key], more = stream.settle()
            losses += more
        return ends, losses

    def deliver(
        self,
        ends: Mapping[str, int],
        header: Mapping[str, Any] | None = None,
        files: Mapping[str, bytes] | None = None,
        patience: float | None = None,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """All streams up to `ends`, and with the last of them `header` and `files`.

        The server takes `header` only when it has everything. Where it says that it has not, go on from there. The
        steps in it are told at once: whoever asks meanwhile learns what goes on.
        """
        while True:
            before = self._positions()
            labels, parts = self._fresh(ends)
            if not self._reach(ends, labels, parts):
                self._send({"steps": (header or {}).get("steps", [])}, labels, parts, patience)
            elif header is None and not labels:
                return {}
            else:
                names = files or {}
                labels += [{"kind": "file", "name": name, "replaces": self.stored.get(name, "")} for name in names]
                try:
                    return self._send(dict(header or {}, ends=ends), labels, [*parts, *names.values()], patience)
                except Conflict as refusal:
                    if not self._learn((refusal.details or {}).get("positions") or {}):
                        raise
            if self._positions() == before:
                raise ServiceException(f"The server took nothing more of what run {self._run_id} wrote: {before}")
            if deadline is not None and time.monotonic() > deadline:
                raise Unavailable(f"What run {self._run_id} wrote had not arrived in time.")

    def _fresh(self, ends: Mapping[str, int] | None = None) -> tuple[list[dict[str, Any]], list[bytes]]:
        """A piece of each stream until the report is full; each time another one comes first."""
        labels: list[dict[str, Any]] = []
        parts: list[bytes] = []
        room = _AT_ONCE
        streams = list(self._streams.values())
        self._turn += 1
        for place in range(len(streams)):
            stream = streams[(place + self._turn) % len(streams)]
            data = stream.piece(room, (ends or {}).get(stream.key)) if room > 0 else b""
            if data or stream.position is None or stream.untold():
                labels.append(stream.label_now())
                parts.append(data)
                room -= len(data)
        return labels, parts

    def _reach(self, ends: Mapping[str, int], labels: list[dict[str, Any]], parts: list[bytes]) -> bool:
        """Whether nothing is lacking once the server has these parts."""
        reached = {stream.key: -1 if stream.position is None else stream.position for stream in self._streams.values()}
        for label, part in zip(labels, parts):
            reached[key_of(label)] += len(part)
        return all(reached[key] >= end for key, end in ends.items())

    def _send(
        self, header: Mapping[str, Any], labels: list[dict[str, Any]], parts: list[bytes], patience: float | None
    ) -> dict[str, Any]:
        body = frames.encode(dict(header, parts=labels), parts)
        try:
            reply: dict[str, Any] = self.client.call(
                "POST", f"{self._runs}{self._run_id}/report", data=body, patience=patience
            )
        except Conflict:
            raise  # it says how far it is
        except Exception:
            for label in labels:
                if key_of(label) in self._streams:
                    self._streams[key_of(label)].unsure()
            raise
        self._learn(reply["positions"])
        return reply

    def _learn(self, positions: Mapping[str, int]) -> bool:
        """How far the server says that it is; whether it said so of any of these streams."""
        known = [key for key in positions if key in self._streams]
        for key in known:
            self._streams[key].learn(positions[key])
        return bool(known)

    def _positions(self) -> dict[str, int | None]:
        return {stream.key: stream.position for stream in self._streams.values()}

    def put_file(self, name: str, path: str, run_id: str | None = None) -> None:
        """A file of any size, streamed. The server has all of it or none."""
        with opened(path) as file:
            self._put(file, f"{run_id or self._run_id}/files/{quoted(name)}")

    def put_collected(self, name: str, path: str, root: str) -> str:
        """The same of one that was found below `root`; its hash. It replaces what was collected before under that name,
        and never what somebody uploaded: then it is stored beside that, and the run says so."""
        with opened(path, root) as file:
            replaces = self.stored.get(name, "")
            stored = self._put(file, f"{self._run_id}/files/{quoted(name)}?replaces={replaces}")
        self.stored[name] = str(stored["hash"])
        return self.stored[name]

    def _put(self, file: BinaryIO, where: str) -> Any:
        return send_file(self.client, self._runs + where, file)

    def put_or_keep(self, name: str, path: str, small: dict[str, bytes], root: str) -> Losses:
        """Send a file, or add it to the `small` ones for the last report; what could not be read of it."""
        try:
            if os.path.getsize(path) <= _SMALL and sum(map(len, small.values())) < _AT_ONCE:
                with opened(path, root) as file:
                    small[name] = file.read()
            else:
                self.put_collected(name, path, root)
        except FileNotFoundError:
            pass  # somebody who is still at it has removed it
        except (NotFound, AuthenticationException):
            raise  # nothing is wrong with the file
        except (OSError, UserErrorException) as error:
            if passing(error):
                raise  # nor here: it is tried again
            return Losses([f"{name} ({_why(error)})"])
        return Losses()

    def send_spool(self, spool: str) -> Losses:
        """Send the files that `log_image` and its kin left, and remove them; what could not be sent, and why."""
        losses = Losses()
        for run_id, name, path in spooled(spool):
            try:
                self.put_file(name, path, run_id)
            except NotFound as error:  # its run was deleted: nobody misses it
                losses += Losses([], [f"{name} could not be stored: {error.message}"])
            except AuthenticationException:
                raise  # nothing is wrong with the file: it stays
            except (UserErrorException, OSError) as error:
                losses += Losses([f"{name} ({_why(error)})"])
            with contextlib.suppress(OSError):
                os.remove(path)
        return losses


def _why(error: Exception) -> str:
    return str(getattr(error, "message", None) or getattr(error, "strerror", None) or error)


def spooled(spool: str) -> list[tuple[str, str, str]]:
    """Run id, name and path of each finished file: they lie in a folder for each run, a dot marks unfinished ones."""
    try:
        return [
            (run_id, name, os.path.join(spool, run_id, name))
            for run_id in os.listdir(spool)
            for name in sorted(os.listdir(os.path.join(spool, run_id)))
            if not name.startswith(".")
        ]
    except FileNotFoundError:
        return []


def send_file(client: Client, where: str, file: BinaryIO, tell: Callable[[int], Any] = lambda size: None) -> Any:
    """PUT what an open file holds now: handed over to a server of this machine, sent to any other one."""
    size = os.fstat(file.fileno()).st_size
    taken = client.hand_over("PUT", where, file.fileno(), size)
    if taken is not None:
        tell(size)
        return taken
    return client.upload(where, lambda: _chunks(file, size, tell), size)


def send_path(client: Client, where: str, path: str, tell: Callable[[int], Any] = lambda size: None) -> Any:
    """The same of a file by its name. One that cannot be read is no fault of the connection's, which would only be
    tried again."""
    try:
        file = open(path, "rb")
    except OSError as error:
        raise UserErrorException(f"{path} cannot be read ({error.strerror}).") from error
    with file:
        return send_file(client, where, file, tell)


def read_whole(path: str, size: int) -> bytes:
    """Exactly `size` bytes of the file: one that grows is cut there, one that shrank or went away is an error."""
    try:
        with open(path, "rb") as file:
            return b"".join(_chunks(file, size))
    except OSError as error:
        raise UserErrorException(f"{path} cannot be read ({error.strerror}).") from error


def _chunks(file: BinaryIO, size: int, tell: Callable[[int], Any] = lambda size: None) -> Iterator[bytes]:
    left = size
    file.seek(0)
    while left > 0:
        try:
            chunk = file.read(min(1 << 20, left))
        except OSError as error:
            raise UserErrorException(f"{file.name} cannot be read ({error.strerror}).") from error
        if not chunk:
            raise UserErrorException(f"{file.name} became shorter while it was read.")
        left -= len(chunk)
        yield chunk
        tell(len(chunk))
