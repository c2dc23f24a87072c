"""How long this server is there: since when, what it does, and when it leaves."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from lapis.machine import apart
from lapis.server.control.access import SERVER, Access, Actor
from lapis.server.control.stores import Stores
from lapis.version import VERSION


class Lifetime:
    def __init__(
        self, stores: Stores, access: Access, home: str, now: Callable[[], float], leave: Callable[[], None]
    ) -> None:
        self._stores = stores
        self._access = access
        self._home = home
        self._now = now
        self._leave = leave
        self._started_at = time.time()
        self._last_request = time.monotonic()
        self.stopping = threading.Event()

    def now(self) -> float:
        return self._now()

    def is_stopping(self) -> bool:
        return self.stopping.is_set()

    def about(self, *, by: Actor = SERVER) -> dict[str, Any]:
        isolation = apart.level(self._home)
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "home": self._home,
            "isolation": isolation.kind,
            "isolation_says": apart.said(isolation),
            "started_at": self._started_at,
            "active_runs": self._stores.runs.count_active(),
            "services": self._stores.services.count(),
            "failed_services": self._stores.services.count_failed(),
            "viewer_key": self._access.viewer_key if by.kind in ("user", "viewer") else None,
        }

    def stop(self) -> None:
        """Leave. Agents and scripts carry on, and find the next server of this home."""
        self.stopping.set()
        self._leave()

    def asked(self) -> None:
        """Somebody asked for something just now."""
        self._last_request = time.monotonic()

    def seconds_until_idle(self, seconds: float) -> float:
        """Before then there is no use in asking whether it is idle for so long; 0 is for ever."""
        if seconds <= 0:
            return math.inf
        left = self._last_request + seconds - time.monotonic()
        return left + 0.01 if left > 0 else seconds / 4  # something is to be looked after: then it ends when that does

    def idle_for(self, seconds: float) -> bool:
        """Whether nobody asked for so long, and there is nothing to look after."""
        quiet = time.monotonic() - self._last_request > seconds
        return quiet and not self._stores.runs.count_active() and not self._stores.services.count()
