"""What becomes of a request that changes something and comes again, because its reply was lost: each route says it.

By one of three decorators; a test walks all routes. How the promise is kept is in server/once.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from starlette.responses import Response

Route = Callable[..., Response]


class Asked(Protocol):
    """The request that is being answered."""

    def in_one_transaction(self, work: Callable[[], Response]) -> Response: ...
    def once(self, work: Callable[[], Response]) -> Response: ...


ASKED: ContextVar[Asked] = ContextVar("asked")


def whole(route: Route) -> Route:
    """All that the route changes is one transaction, with the answer in it. Not for what may take its time."""
    return _by_decorator(route, "whole", lambda asked, work: asked.in_one_transaction(work))


def kept(route: Route) -> Route:
    """The answer is kept as soon as there is one: for what waits for processes or machines, which `whole` cannot."""
    return _by_decorator(route, "kept", lambda asked, work: asked.once(work))


def harmless(because: str) -> Callable[[Any], Any]:
    """The route may be asked again without an identity, because of what it says."""

    def decorate(route: Any) -> Any:
        route.repeated = f"harmless: {because}"
        return route

    return decorate


def _by_decorator(route: Route, how: str, answer: Callable[[Asked, Callable[[], Response]], Response]) -> Route:
    @functools.wraps(route)
    def once(*given: Any, **named: Any) -> Response:
        return answer(ASKED.get(), functools.partial(route, *given, **named))

    once.repeated = how  # type: ignore[attr-defined]
    return once
