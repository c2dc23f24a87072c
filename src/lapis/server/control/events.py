"""What happens in the server: told by the part where it happens, heard by those that asked to be told.

An event only says 'look again'; what is true stands in the store. So the parts need not know one another: each is given
this one value, tells through it, and listens to it. What is told within a transaction is heard once it is committed:
whoever looked before would see nothing new, and not look again.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from lapis.domain.run import RunRecord


class Events:
    """Told from any thread. A listener is called by whoever tells, and must not wait."""

    def __init__(self, after_commit: Callable[[Callable[[], object]], None]) -> None:
        self._after_commit = after_commit
        self._on_work: list[Callable[[], None]] = []
        self._on_run_told: list[Callable[[str], None]] = []
        self._on_search_begun: list[Callable[[RunRecord], None]] = []
        self._on_pipeline_begun: list[Callable[[RunRecord], None]] = []
        self._lock = threading.Lock()
        self._followers: dict[str, set[Follower]] = defaultdict(set)  # by run

    def wake(self) -> None:
        """There is something to be brought in line: a run to launch, a build that is done, a service to look after."""
        for listener in self._on_work:
            self._after_commit(listener)

    def on_work(self, listener: Callable[[], None]) -> None:
        self._on_work.append(listener)

    def tell(self, run_id: str) -> None:
        """There is news of that run."""
        self._after_commit(partial(self._tell, run_id))

    def _tell(self, run_id: str) -> None:
        for listener in self._on_run_told:
            listener(run_id)
        with self._lock:
            followers = list(self._followers.get(run_id, ()))
        for follower in followers:
            follower.told()

    def on_run_told(self, listener: Callable[[str], None]) -> None:
        self._on_run_told.append(listener)

    def search_begun(self, run: RunRecord) -> None:
        """A hyperparameter search was made."""
        for listener in self._on_search_begun:
            self._after_commit(partial(listener, run))

    def on_search_begun(self, listener: Callable[[RunRecord], None]) -> None:
        self._on_search_begun.append(listener)

    def pipeline_begun(self, run: RunRecord) -> None:
        """A pipeline was submitted."""
        for listener in self._on_pipeline_begun:
            self._after_commit(partial(listener, run))

    def on_pipeline_begun(self, listener: Callable[[RunRecord], None]) -> None:
        self._on_pipeline_begun.append(listener)

    def follow(self, run_id: str) -> Follower:
        """Begin to follow before looking, so that news between the look and the wait is not missed."""
        return Follower(self, run_id)

    def _add(self, run_id: str, follower: Follower) -> None:
        with self._lock:
            self._followers[run_id].add(follower)

    def _drop(self, run_id: str, follower: Follower) -> None:
        with self._lock:
            self._followers[run_id].discard(follower)
            if not self._followers[run_id]:
                del self._followers[run_id]


class Follower:
    """Waits in the event loop for news of one run."""

    def __init__(self, events: Events, run_id: str) -> None:
        self._events, self._run_id = events, run_id
        self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()

    def __enter__(self) -> Follower:
        self._events._add(self._run_id, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._events._drop(self._run_id, self)

    def told(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:  # that loop has closed: nobody waits there any more
            pass

    async def news(self, seconds: float) -> bool:
        """Wait for news; False when `seconds` passed without any."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        self._news.clear()
        return True
