"""Version numbers and the spans that a requirement leaves open. Enough for the tables of `world`, no more."""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, ...]

_LIMIT = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([^,\s]+)")


def version(text: str) -> Version:
    """'2.15.0.post1' is (2, 15): trailing zeros say nothing, and builds of one version are one version here."""
    return _stripped(_numbers(text))


@dataclass(frozen=True)
class Span:
    """The versions from `low` on and below `high`; no `high` is no end."""

    low: Version = ()
    high: Version | None = None

    def meets(self, other: Span) -> bool:
        return (other.high is None or self.low < other.high) and (self.high is None or other.low < self.high)

    def ends_by(self, limit: Version) -> bool:
        """Whether every version in here is below `limit`."""
        return self.high is not None and self.high <= limit


def span(limits: str) -> Span:
    """What '>=1.15,<2' leaves open. '!=' is passed over: it takes single versions out, never an end."""
    low: Version = ()
    high: Version | None = None
    for operator, text in _LIMIT.findall(limits):
        bounds = _bounds(operator, text)
        low = max(low, bounds.low)
        if bounds.high is not None:
            high = bounds.high if high is None else min(high, bounds.high)
    return Span(low, high)


def _bounds(operator: str, text: str) -> Span:
    numbers = _numbers(text)
    exact = _stripped(numbers)
    if operator in ("==", "==="):
        if text.endswith(".*"):
            return Span(exact, _next(numbers))
        return Span(exact, _after(exact))
    if operator == "~=":
        return Span(exact, _next(numbers[:-1]))
    if operator == "<":
        return Span(high=exact)
    if operator == "<=":
        return Span(high=_after(exact))
    if operator == ">=":
        return Span(low=exact)
    if operator == ">":
        return Span(low=_after(exact))
    return Span()


def _numbers(text: str) -> Version:
    """The numbers that lead: '1.6.0+cpu' is (1, 6, 0)."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def _stripped(numbers: Version) -> Version:
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


def _after(exact: Version) -> Version:
    """What comes right after: above (2, 3) and below (2, 3, 0, 1)."""
    return (*exact, 0)


def _next(numbers: Version) -> Version | None:
    """Where 2.3.* ends: at 2.4. A lone '*' has no end."""
    return (*numbers[:-1], numbers[-1] + 1) if numbers else None
