"""What the script leaves in `outputs` and `logs`, and files it spooled for us: brought in as they grow."""

from __future__ import annotations

import hashlib
import os
import threading
import time

from lapis.client import stored_record
from lapis.client.collected import Collected, Stamp, opened, stamp
from lapis.client.shipping import Shipper, spooled
from lapis.domain.delivery import Losses
from lapis.errors import AzureMLException, ServiceException
from lapis.machine import file_times

LOOK_EVERY = 1.0  # seconds between looks while there is something to look at
LOOK_AT_LEAST = 10.0  # and while nothing happens: not all that a script writes is told of
SETTLED_AFTER = 2.0  # a file that has not changed for so long is worth sending before the end


class Outputs:
    """`logs/` is streamed as it grows. `outputs/` is sent when a file has settled, and all of it at the end.

    What was sent before the end is compared by its content then, unless its times would tell of any change: a file may
    have changed and not look so, through a memory map, say.
    """

    def __init__(self, shipper: Shipper, code: str, folder: str, watch: list[str], collect: bool = True) -> None:
        self._shipper = shipper
        self._watch = watch  # folders that are streamed
        self._collect = ["outputs"] if collect else []
        self._code = code
        self._folder = folder
        self._spool = os.path.join(folder, "files")
        self._found = Collected(code)
        self._seen: dict[str, tuple[Stamp | None, float]] = {}  # by name: how it looked, and since when
        self._sent: dict[str, Stamp] = {}  # by name: how it looked when it was sent, or was found to be as it was sent
        self._compared: dict[str, Stamp | None] = {}  # by name: as it was when it is known to be what is stored
        self.next_look = 0.0  # when it is time
        self._looked, self._pause = 0.0, LOOK_EVERY
        self._sending: threading.Thread | None = None
        self._losses = Losses()
        self._ended = False

    def look(self) -> None:
        """Quick: follow new logs, and let a thread of its own send outputs that have settled."""
        now = time.monotonic()
        if now < self.next_look:
            return
        self._looked = now
        self._follow_logs()
        unsent, waiting = self._unsent(), spooled(self._spool)
        self._pause = LOOK_EVERY if unsent or waiting else min(2 * self._pause, LOOK_AT_LEAST)
        self.next_look = now + self._pause
        if self._sending is not None and self._sending.is_alive():
            return
        settled = [(name, path) for name, path in unsent if self._unchanged_for(name, path) >= SETTLED_AFTER]
        if settled or waiting:
            self._sending = threading.Thread(target=self._send_all, args=(settled,), daemon=True)
            self._sending.start()

    def folders(self) -> list[str]:
        """Where to expect something new."""
        places = [self._spool, *(os.path.join(self._code, name) for name in (*self._watch, *self._collect))]
        return [place for place in places if os.path.isdir(place)]

    def news(self) -> None:
        """The script does something: look soon."""
        self._pause = LOOK_EVERY
        self.next_look = min(self.next_look, self._looked + LOOK_EVERY)

    def _unchanged_for(self, name: str, path: str) -> float:
        """Seconds since it was first seen as it is. By our own clock: its times are what somebody set them to."""
        now, before = stamp(path), self._seen.get(name)
        if before is None or before[0] != now:
            before = self._seen[name] = now, time.monotonic()
        return time.monotonic() - before[1]

    def backlog(self) -> int:
        """How many bytes are not sent yet."""
        return sum(found.size for found in (stamp(path) for _, path in self._unsent()) if found)

    def collect(self) -> tuple[dict[str, bytes], Losses]:
        """Everything not sent yet: large files go now, small ones are returned for the last report."""
        if self._sending is not None:
            self._sending.join()
        self._follow_logs()
        small: dict[str, bytes] = {}
        self._losses += self._shipper.send_spool(self._spool)
        lost: list[str] = []
        self._compare_stored()
        for name, path in self._unsent():
            before, losses = stamp(path), self._shipper.put_or_keep(name, path, small, self._code)
            lost += losses.lost
            if before is not None and name not in small and not losses.lost:
                self._sent[name] = before
        return small, self._losses + Losses(lost, list(self._found.notices.values()))

    def _compare_stored(self) -> None:
        """Of what was sent before the end, find out whether it is still the same."""
        if not self._ended:  # from now on nobody but us stores anything
            self._ended = True
            self._shipper.stored.update(stored_record.read(self._folder))
        stored, found = self._shipper.stored, [file for folder in self._collect for file in self._found.files(folder)]
        known = [(name, path) for name, path in found if name in stored and self._compared.get(name) != stamp(path)]
        if not known:
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            digests = threads.map(lambda file: _digest(file[1], self._code), known)
            for (name, _), (digest, looked) in zip(known, digests, strict=True):
                if looked is not None and digest == stored[name]:
                    self._sent[name] = looked
                else:
                    self._sent.pop(name, None)
                self._compared[name] = looked

    def _follow_logs(self) -> None:
        for folder in self._watch:
            for name, path in self._found.files(folder):
                self._shipper.watch_log(name, path, self._code)

    def _unsent(self) -> list[tuple[str, str]]:
        found = [file for folder in self._collect for file in self._found.files(folder)]
        return [(name, path) for name, path in found if self._sent.get(name) != stamp(path)]

    def _send_all(self, items: list[tuple[str, str]]) -> None:
        try:
            self._losses += self._shipper.send_spool(self._spool)
            self._shipper.stored.update(stored_record.read(self._folder))  # the script may have brought in some itself
            for name, path in items:
                self._send(name, path)
        except (OSError, AzureMLException, ServiceException):
            pass  # the server is away, or a file changed: there will be another look

    def _send(self, name: str, path: str) -> None:
        tells = file_times.tell_from_now_on(path)
        before = stamp(path)
        digest = self._shipper.put_collected(name, path, self._code)
        stored_record.add(self._folder, name, digest)
        if before is not None:
            self._sent[name] = before
            self._compared[name] = before if tells else None


def _digest(path: str, root: str) -> tuple[str, Stamp | None]:
    """The hash of what lies there, and how it looked before."""
    before = stamp(path)
    try:
        with opened(path, root) as file:
            return hashlib.file_digest(file, "sha256").hexdigest(), before
    except OSError:
        return "", None
