"""What the script leaves in `outputs` and `logs`, and files it spooled for us: brought in as they grow."""

from __future__ import annotations

import os
import threading
import time

from lapis.client.shipping import Shipper, spooled
from lapis.domain.delivery import Losses
from lapis.domain.tree import check_path
from lapis.errors import AzureMLException, ServiceException, UserErrorException

LOOK_EVERY = 1.0
SETTLED_AFTER = 2.0  # a file that has not changed for so long is worth sending before the end


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
        self._losses = Losses()
        self._unnameable: set[str] = set()

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

    def backlog(self) -> int:
        """How many bytes are not sent yet."""
        return sum(stamp[0] for stamp in (_stamp(path) for _, path in self._unsent()) if stamp)

    def collect(self) -> tuple[dict[str, bytes], Losses]:
        """Everything not sent yet: large files go now, small ones are returned for the last report."""
        if self._sending is not None:
            self._sending.join()
        self._follow_logs()
        small: dict[str, bytes] = {}
        self._losses += self._shipper.send_spool(self._spool)
        lost: list[str] = []
        for name, path in self._unsent():
            stamp, losses = _stamp(path), self._shipper.put_or_keep(name, path, small)
            lost += losses.lost
            if stamp is not None and name not in small and not losses.lost:
                self._sent[name] = stamp
        odd = [
            f"{name!r} could not be stored: no run can have a file of that name" for name in sorted(self._unnameable)
        ]
        return small, self._losses + Losses(lost, odd)

    def _follow_logs(self) -> None:
        for folder in self._watch:
            for name, path in self._files(folder):
                self._shipper.follow_log(name, path, may_go=True)

    def _unsent(self) -> list[tuple[str, str]]:
        found = [file for folder in self._collect for file in self._files(folder)]
        return [(name, path) for name, path in found if self._sent.get(name) != _stamp(path)]

    def _files(self, folder: str) -> list[tuple[str, str]]:
        """What lies below `folder` and can be stored; names that no run can have are remembered."""
        found = _regular_files(self._code, folder)
        self._unnameable.update(name for name, _ in found if not _nameable(name))
        return [(name, path) for name, path in found if name not in self._unnameable]

    def _send_all(self, items: list[tuple[str, str]]) -> None:
        try:
            self._losses += self._shipper.send_spool(self._spool)
            for name, path in items:
                self._send(name, path)
        except (OSError, AzureMLException, ServiceException):
            pass  # the server is away, or a file changed: there will be another look

    def _send(self, name: str, path: str) -> None:
        stamp = _stamp(path)
        self._shipper.put_file(name, path)
        if stamp is not None:
            self._sent[name] = stamp


def _regular_files(code: str, folder: str) -> list[tuple[str, str]]:
    """What lies below `folder`, by the name it has in the run. Links are not followed: they may lead anywhere."""
    found = []
    for where, _, names in os.walk(os.path.join(code, folder)):
        for leaf in sorted(names):
            path = os.path.join(where, leaf)
            name = os.path.relpath(path, code).replace(os.sep, "/")
            if not os.path.islink(path) and os.path.isfile(path):
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
