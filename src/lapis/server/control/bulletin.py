"""Wakes whoever waits for news of a run. News only says 'look again'; what is true stands in the store."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable


class Bulletin:
    """Called from any thread; waited for in the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = defaultdict(set)
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the id of every run that there is news of. It must not wait."""
        self._listeners.append(listener)

    def tell(self, run_id: str) -> None:
        for listener in self._listeners:
            listener(run_id)
        with self._lock:
            waiting = list(self._waiting.get(run_id, ()))
        for loop, event in waiting:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # that loop has closed: nobody waits there any more
                pass

    def watch(self, run_id: str) -> Watch:
        """Begin to listen before looking, so that news between the look and the wait is not missed."""
        return Watch(self, run_id)

    def _add(self, run_id: str, entry: tuple[asyncio.AbstractEventLoop, asyncio.Event]) -> None:
        with self._lock:
            self._waiting[run_id].add(entry)

    def _drop(self, run_id: str, entry: tuple[asyncio.AbstractEventLoop, asyncio.Event]) -> None:
        with self._lock:
            self._waiting[run_id].discard(entry)
            if not self._waiting[run_id]:
                del self._waiting[run_id]


class Watch:
    def __init__(self, bulletin: Bulletin, run_id: str) -> None:
        self._bulletin, self._run_id = bulletin, run_id
        self._event = asyncio.Event()
        self._entry = (asyncio.get_running_loop(), self._event)

    def __enter__(self) -> Watch:
        self._bulletin._add(self._run_id, self._entry)
        return self

    def __exit__(self, *_: object) -> None:
        self._bulletin._drop(self._run_id, self._entry)

    async def news(self, seconds: float) -> bool:
        """Wait for news; False when `seconds` passed without any."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        self._event.clear()
        return True
