"""Files that grow while they are sent: journals, what a process prints, and logs that a script treats as it likes."""

from __future__ import annotations

import os
import stat
from typing import Any, BinaryIO, Mapping

from lapis.client import unwritten
from lapis.client.collected import opened
from lapis.domain.delivery import Losses

_LINE_PIECE = 4 << 20  # bytes read at a time of a journal's line that is longer than a report
_BACKWARDS = 64 << 10  # bytes read at a time when the last line of a journal is looked for
_TAIL = 64  # bytes before its end by which a log that goes on is told from another one


class Stream:
    """A file that is only ever appended to, and how much of it the server has. `None`: not known yet, ask."""

    may_go = False  # whether its script may remove it or begin it anew

    def __init__(self, path: str, label: Mapping[str, Any], position: int | None = 0) -> None:
        self.path = path
        self.label = dict(label)
        self.position = position
        self.heard_of = False  # by the server
        self.anew = False  # another file is in its place, or it was cut: what the server has of it is to go
        self._seen = 0  # the length it had at the last look
        self._inode = 0

    @property
    def kind(self) -> str:
        return str(self.label["kind"])

    @property
    def key(self) -> str:
        return key_of(self.label)

    def piece(self, most: int, end: int | None = None) -> bytes:
        """The next bytes that the server lacks. Of a journal whole lines: one at least, however long it is."""
        if self.position is None:
            return b""
        try:
            with open(self.path, "rb", buffering=0) as file:
                left = (os.fstat(file.fileno()).st_size if end is None else end) - file.seek(self.position)
                data = file.read(max(0, min(left, most))) or b""
                while self.kind == "journal" and b"\n" not in data and len(data) < left:
                    more = file.read(min(left - len(data), _LINE_PIECE))
                    if not more:
                        break
                    data += more
        except OSError:
            return b""  # `settle` says what is amiss, if that is so at the end
        return data[: data.rfind(b"\n") + 1] if self.kind == "journal" else data

    def learn(self, position: int) -> None:
        """The server says how far it is."""
        self.position, self.heard_of, self.anew = position, True, False

    def unsure(self) -> None:
        """Whether the server took the last piece, nobody knows."""

    def behind(self) -> bool:
        try:
            found = self._status()
        except OSError:
            return False
        if not stat.S_ISREG(found.st_mode):
            return False  # its script has made a folder of that name
        if self.may_go and (found.st_size < (self.position or 0) or self._inode not in (0, found.st_ino)):
            self._begin_anew()
        self._seen, self._inode = found.st_size, found.st_ino
        return self.position is None or self.untold() or self._seen > self.position

    def untold(self) -> bool:
        """A log is told of even while it is empty: a reader finds it as soon as it is there, or there again."""
        return self.anew or (self.kind == "log" and not self.heard_of and os.path.exists(self.path))

    def label_now(self) -> dict[str, Any]:
        """What a piece of it is told as."""
        label = dict(self.label, offset=self.position or 0)
        return dict(label, anew=True) if self.anew else label

    def lacks(self) -> int:
        """How many bytes the server lacks, as of the last look."""
        return max(0, self._seen - (self.position or 0))

    def settle(self) -> tuple[int, Losses]:
        """Where it ends, as nothing more is to come; and what cannot be brought in of it, where that is known."""
        self.behind()
        had = self.position or 0
        try:
            with self._opened() as file:
                size = os.fstat(file.fileno()).st_size
                end = _after_last_line(file, size) if self.kind == "journal" else size
        except OSError as error:
            never_there = isinstance(error, FileNotFoundError) and not (had or self._inode)
            if self.may_go or never_there:
                return had, Losses()
            return had, Losses([f"{self._what()} after its first {had:,} bytes ({error.strerror})"])
        if end < had:
            return end, Losses([f"{self._what()} after it was cut from {had:,} to {size:,} bytes"])
        held = unwritten.lost_beside(self.path) if self.kind == "journal" else []
        if end < size:
            cut = f"{self._what()} ends with {size - end:,} bytes of a line that was never finished"
            return end, Losses(held, [cut])
        return end, Losses(held)

    def _opened(self) -> BinaryIO:
        return open(self.path, "rb")

    def _status(self) -> os.stat_result:
        return os.stat(self.path)

    def _begin_anew(self) -> None:
        self.position, self.anew = 0, True

    def _what(self) -> str:
        return "What it logged" if self.kind == "journal" else str(self.label["name"])


class WatchedLog(Stream):
    """A log that its script may rewrite, cut, rotate or replace: what the server has in the end is what lies there.

    While it grows, the bytes before the position tell whether it is still the same text. That is a guess, which a
    reader who follows it can live with; at the end all that was sent is compared by its hash, and sent anew if it is
    not what the file begins with.
    """

    may_go = True

    def __init__(self, path: str, label: Mapping[str, Any], root: str) -> None:
        super().__init__(path, label)
        self._root = root  # below which it must lie, wherever links lead
        self._forget_sent()

    def _forget_sent(self) -> None:
        import hashlib  # late: a script that logs has no use for it

        self._sent: Any = hashlib.sha256()  # of all up to the position; None: not known
        self._tail = b""
        self._pending = b""

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._forget_sent()

    def _opened(self) -> BinaryIO:
        return opened(self.path, self._root)

    def _status(self) -> os.stat_result:
        found = os.lstat(self.path)
        if stat.S_ISLNK(found.st_mode):
            with self._opened() as file:
                return os.fstat(file.fileno())
        return found

    def piece(self, most: int, end: int | None = None) -> bytes:
        self._pending = b""
        if self.position is None:
            return b""
        try:
            with self._opened() as file:
                size = os.fstat(file.fileno()).st_size
                if not self._goes_on(file, size):
                    self._begin_anew()
                file.seek(self.position)
                left = (size if end is None else min(end, size)) - self.position
                self._pending = file.read(max(0, min(left, most)))
        except OSError:
            pass
        return self._pending

    def _goes_on(self, file: BinaryIO, size: int) -> bool:
        assert self.position is not None
        file.seek(max(0, self.position - len(self._tail)))
        return size >= self.position and file.read(len(self._tail)) == self._tail

    def learn(self, position: int) -> None:
        known = self._sent is not None and self.position is not None
        if known and position == (self.position or 0) + len(self._pending):
            self._sent.update(self._pending)
            self._tail = (self._tail + self._pending)[-_TAIL:]
        elif not known or position != self.position:
            self.unsure()
        self._pending = b""
        super().learn(position)

    def unsure(self) -> None:
        self._sent, self._tail, self._pending = None, b"", b""

    def settle(self) -> tuple[int, Losses]:
        self.behind()
        if self.position and not self._was_sent():
            self._begin_anew()
        return super().settle()

    def _was_sent(self) -> bool:
        """Whether the file begins with what the server has of it. Of one that is gone, that is all there is."""
        if self._sent is None:
            return not os.path.isfile(self.path)
        import hashlib

        digest, left = hashlib.sha256(), self.position or 0
        try:
            with self._opened() as file:
                while left > 0:
                    chunk = file.read(min(1 << 20, left))
                    if not chunk:
                        return False
                    digest.update(chunk)
                    left -= len(chunk)
        except OSError:
            return True
        return bool(digest.digest() == self._sent.digest())


def key_of(label: Mapping[str, Any]) -> str:
    return "{}:{}".format(label["kind"], label.get("name") or label.get("stream"))


def whole_lines(path: str) -> int:
    """How many bytes of a journal are whole lines. What follows is a line that is being written, or never will be."""
    try:
        with open(path, "rb") as file:
            return _after_last_line(file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError:
        return 0


def _after_last_line(file: BinaryIO, size: int) -> int:
    end = size
    while end > 0:
        start = max(0, end - _BACKWARDS)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
