"""What the script leaves in `outputs` and `logs`, and files it spooled for us: brought in as they grow."""

from __future__ import annotations

import os
import threading
import time

from lapis.client.shipping import Shipper, is_small, spooled
from lapis.domain.tree import check_path
from lapis.errors import AzureMLException, ServiceException, UserErrorException

LOOK_EVERY = 1.0
SETTLED_AFTER = 2.0  # a file that has not changed for so long is worth sending before the end
_SMALL_TOTAL = 4 << 20


class Outputs:
    """`logs/` is streamed as it grows. `outputs/` is sent when a file has settled, and all of it at the end."""

    def __init__(self, shipper: Shipper, code: str, folder: str, watch: list[str], collect: bool = True) -> None:
        self._shipper = shipper
        self._watch = watch  # folders that are streamed
        self._collect = ["outputs"] if collect else []
        self._code = code
        self._spool = os.path.join(folder, "files")
        self._sent: dict[str, tuple[int, int]] = {}  # name -> size and time of what the server has
        self._next_look = 0.0
        self._sending: threading.Thread | None = None
        self._refused: list[str] = []

    def look(self) -> None:
        """Quick: follow new logs, and let a thread of its own send outputs that have settled."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_EVERY
        self._follow_logs()
        if self._sending is not None and self._sending.is_alive():
            return
        settled = [(name, path) for name, path in self._unsent() if _age(path) > SETTLED_AFTER]
        if settled or spooled(self._spool):
            self._sending = threading.Thread(target=self._send_all, args=(settled,), daemon=True)
            self._sending.start()

    def collect(self) -> tuple[dict[str, bytes], list[str]]:
        """Everything not sent yet: large files go now, small ones are returned for the last report."""
        if self._sending is not None:
            self._sending.join()
        self._follow_logs()
        small: dict[str, bytes] = {}
        notices = self._refused + self._shipper.send_spool(self._spool)
        for name, path in self._unsent():
            try:
                if is_small(path) and sum(map(len, small.values())) < _SMALL_TOTAL:
                    with open(path, "rb") as file:
                        small[name] = file.read()
                else:
                    self._send(name, path)
            except (OSError, UserErrorException) as error:  # unreadable, or vanished: the verdict stands all the same
                notices.append(f"{name} could not be stored: {error}")
        return small, notices

    def _follow_logs(self) -> None:
        for folder in self._watch:
            for name, path in _files(self._code, folder):
                self._shipper.follow_log(name, path)

    def _unsent(self) -> list[tuple[str, str]]:
        found = [file for folder in self._collect for file in _files(self._code, folder)]
        return [(name, path) for name, path in found if self._sent.get(name) != _stamp(path)]

    def _send_all(self, items: list[tuple[str, str]]) -> None:
        try:
            self._refused += self._shipper.send_spool(self._spool)
            for name, path in items:
                self._send(name, path)
        except (OSError, AzureMLException, ServiceException):
            pass  # the server is away, or a file changed: there will be another look

    def _send(self, name: str, path: str) -> None:
        stamp = _stamp(path)
        self._shipper.put_file(name, path)
        if stamp is not None:
            self._sent[name] = stamp


def _files(code: str, folder: str) -> list[tuple[str, str]]:
    """Regular files below `folder` by the name they have in the run. Links are not followed: they may lead anywhere."""
    found = []
    for where, _, names in os.walk(os.path.join(code, folder)):
        for leaf in sorted(names):
            path = os.path.join(where, leaf)
            name = os.path.relpath(path, code).replace(os.sep, "/")
            if not os.path.islink(path) and os.path.isfile(path) and _nameable(name):
                found.append((name, path))
    return found


def _nameable(name: str) -> bool:
    try:
        check_path(name)
    except UserErrorException:
        return False
    return True


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _age(path: str) -> float:
    """Seconds since it was last written; of one that is gone, none."""
    stamp = _stamp(path)
    return 0.0 if stamp is None else time.time() - stamp[1] / 1e9
