"""Brings what a run writes on disk to the server: logs and journals by position, files by content.

Positions make it safe to send anything again: the server takes what is new and says how far it is. So nothing is lost
or doubled when this process, the server or the network dies; the files on disk are the spool.
"""

from __future__ import annotations

import os
from typing import Any, Iterator, Mapping

from lapis.client.http_client import Client
from lapis.domain import frames
from lapis.errors import UserErrorException

_AT_ONCE = 4 << 20  # bytes of one stream in one report
_SMALL = 256 << 10  # files up to this size travel inside a report


class Stream:
    """A file that grows, and how much of it the server has. `None`: not known yet, ask."""

    def __init__(self, path: str, label: Mapping[str, Any], position: int | None = 0) -> None:
        self.path = path
        self.label = dict(label)
        self.position = position
        self.heard_of = False  # by the server

    @property
    def key(self) -> str:
        return "{}:{}".format(self.label["kind"], self.label.get("name") or self.label.get("stream"))

    def fresh(self, final: bool) -> bytes:
        """What the server lacks; of a journal only whole lines, unless no more will come."""
        if self.position is None:
            return b""
        try:
            with open(self.path, "rb", buffering=0) as file:
                left = os.fstat(file.fileno()).st_size - file.seek(self.position)
                data = file.read(max(0, min(left, _AT_ONCE))) or b""
                while self.label["kind"] == "journal" and data and b"\n" not in data:
                    more = file.read(_AT_ONCE)  # one line longer than the limit still travels whole
                    if not more:
                        break
                    data += more
        except FileNotFoundError:
            return b""
        if self.label["kind"] == "journal" and not (final and len(data) < _AT_ONCE):
            data = data[: data.rfind(b"\n") + 1]
        return data

    def behind(self) -> bool:
        try:
            return self.position is None or self.unheard() or os.path.getsize(self.path) > self.position
        except FileNotFoundError:
            return False

    def unheard(self) -> bool:
        """A log is told of even while it is empty: a reader finds it as soon as it is there."""
        return self.label["kind"] == "log" and not self.heard_of and os.path.exists(self.path)


class Shipper:
    """Everything of one run that travels by report. One thread uses it at a time."""

    def __init__(self, client: Client, workspace_id: str, run_id: str, resumed: bool = False) -> None:
        self.client = client
        self._runs = f"/workspaces/{workspace_id}/runs/"
        self._run_id = run_id
        self._streams: dict[str, Stream] = {}
        self._resumed = resumed  # somebody was here before: ask how far the server is

    def follow_log(self, name: str, path: str) -> None:
        self._follow(Stream(path, {"kind": "log", "name": name}))

    def follow_journal(self, stream: str, path: str) -> None:
        self._follow(Stream(path, {"kind": "journal", "stream": stream}))

    def _follow(self, stream: Stream) -> None:
        if stream.key not in self._streams:
            stream.position = None if self._resumed else 0
            self._streams[stream.key] = stream

    def behind(self) -> bool:
        return any(stream.behind() for stream in self._streams.values())

    def report(
        self,
        header: Mapping[str, Any] | None = None,
        files: Mapping[str, bytes] | None = None,
        final: bool = False,
        patience: float | None = None,
    ) -> dict[str, Any]:
        """One report with what is new of every stream. With `final`, all of it, and only then `header`."""
        labels, parts = self._fresh(final)
        while final and parts and (sum(map(len, parts)) >= _AT_ONCE or not self._known()):
            self._send({}, labels, parts, patience)  # what is left does not fit into the last report
            labels, parts = self._fresh(final)
        for name, content in (files or {}).items():
            labels.append({"kind": "file", "name": name})
            parts.append(content)
        return self._send(header or {}, labels, parts, patience)

    def _fresh(self, final: bool) -> tuple[list[dict[str, Any]], list[bytes]]:
        labels, parts = [], []
        for stream in self._streams.values():
            data = stream.fresh(final)
            if data or stream.position is None or stream.unheard():
                labels.append(dict(stream.label, offset=stream.position or 0))
                parts.append(data)
        return labels, parts

    def _send(
        self, header: Mapping[str, Any], labels: list[dict[str, Any]], parts: list[bytes], patience: float | None
    ) -> dict[str, Any]:
        body = frames.encode(dict(header, parts=labels), parts)
        reply: dict[str, Any] = self.client.call(
            "POST", f"{self._runs}{self._run_id}/report", data=body, patience=patience
        )
        for key, position in reply["positions"].items():
            if key in self._streams:
                self._streams[key].position = position
                self._streams[key].heard_of = True
        return reply

    def _known(self) -> bool:
        return all(stream.position is not None for stream in self._streams.values())

    def put_file(self, name: str, path: str, run_id: str | None = None) -> None:
        """A file of any size, streamed. The server has all of it or none."""
        from lapis.client.http_client import quoted

        size = os.path.getsize(path)
        where = f"{self._runs}{run_id or self._run_id}/files/{quoted(name)}"
        self.client.upload(where, lambda: read_chunks(path, size), size)

    def send_spool(self, spool: str) -> list[str]:
        """Send the files that `log_image` and its kin left, and remove them; what was refused, and why."""
        refused = []
        for run_id, name, path in spooled(spool):
            try:
                self.put_file(name, path, run_id)
            except UserErrorException as error:  # its run was deleted, say
                refused.append(f"{name} could not be stored: {error.message}")
            os.remove(path)
        return refused


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


def is_small(path: str) -> bool:
    return os.path.getsize(path) <= _SMALL


def read_chunks(path: str, size: int) -> Iterator[bytes]:
    """Exactly `size` bytes of the file: one that grows is cut there; one that shrank or went away is an error, and
    none of the connection's, which would only be tried again."""
    left = size
    try:
        with open(path, "rb") as file:
            while left > 0:
                chunk = file.read(min(1 << 20, left))
                if not chunk:
                    raise UserErrorException(f"{path} became shorter while it was read.")
                left -= len(chunk)
                yield chunk
    except OSError as error:
        raise UserErrorException(f"{path} cannot be read ({error.strerror}).") from error
