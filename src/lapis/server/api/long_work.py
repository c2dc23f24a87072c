"""Work that may take long has threads of its own, so that it never stands in the way of quick requests.

Only so much of a kind is done at once, only so much waits for its turn, and what comes then is told to come again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from lapis.errors import Busy

P = ParamSpec("P")
T = TypeVar("T")


class Lane:
    """One kind of such work: `at_once` of it, and `waiting` more."""

    def __init__(self, what: str, at_once: int, waiting: int) -> None:
        self._what, self._at_once, self._most = what, at_once, at_once + waiting
        self._limiter: CapacityLimiter | None = None  # belongs to the event loop that first needs it
        self._here = 0

    async def do(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        if self._here >= self._most:
            waiting = self._here - self._at_once
            raise Busy(
                f"The server is {self._what}, {self._at_once} at once, and {waiting} more wait for their turn. Try "
                "again in a while."
            )
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._at_once)
        self._here += 1
        try:
            # abandoned: a server that is told to leave does not wait for it
            return await to_thread.run_sync(_called(work, given, named), limiter=self._limiter, abandon_on_cancel=True)
        finally:
            self._here -= 1

    def route(self, answers: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
        """The same route, answered in this lane."""

        @functools.wraps(answers)
        async def apart(*given: P.args, **named: P.kwargs) -> T:
            return await self.do(answers, *given, **named)

        return apart


def _called(work: Callable[..., T], given: Any, named: Any) -> Callable[[], T]:
    return lambda: work(*given, **named)


RESOLVING = Lane("resolving environments", 16, 240)
DEPLOYING = Lane("deploying or deleting services", 16, 240)
LOOKING = Lane("looking into models and datastores", 8, 120)
