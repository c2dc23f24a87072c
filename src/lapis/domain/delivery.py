"""A verdict comes last: a run ends when all that it wrote has arrived, or says what could not be brought in. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

_SHOWN = 10  # of the things that could not be delivered


class Losses(NamedTuple):
    """What became of things that could not be sent as they are."""

    lost: list[str] = []  # they cannot be delivered: the run has not completed
    notices: list[str] = []  # worth a warning, no more

    def __add__(self, other: Any) -> Losses:
        return Losses(self.lost + other.lost, self.notices + other.notices)


def lacking(ends: Mapping[str, Any], reached: Mapping[str, int]) -> list[str]:
    """Which streams have not come as far as their sender states that they go, in words. A verdict waits for them.

    More than stated is no fault: a log that its script emptied is shorter than what was taken of it.
    """
    return [
        "of {} '{}' {:,} of {:,} bytes have arrived".format(*key.split(":", 1), reached[key], int(end))
        for key, end in ends.items()
        if reached[key] < int(end)
    ]


def silent_nodes(verdict: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Which nodes have not said that they delivered all they had. Without them a run cannot be Completed."""
    if verdict["state"] != "Completed":
        return []
    return [f"node {index} has not delivered" for index, node in enumerate(nodes) if not node.get("delivered")]


def not_delivered(verdict: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    """`verdict` with what could not be delivered. It is not Completed then, and still tells how the script ended."""
    if not lost:
        return dict(verdict)
    lost = list(dict.fromkeys(lost))  # what was tried twice is lost once
    more = f"; and {len(lost) - _SHOWN:,} more" if len(lost) > _SHOWN else ""
    what = f"{len(lost):,} of the things it wrote could not be stored: {'; '.join(lost[:_SHOWN])}{more}"
    told = dict(verdict.get("error") or {"code": "NotDelivered", "message": f"{verdict['reason']}."})
    error = {**told, "message": f"{told['message']}\n{what}.", "notDelivered": lost}
    if verdict["state"] != "Completed":
        return dict(verdict, error=error)
    return dict(verdict, state="Failed", reason=f"{verdict['reason']}, but {what}", error=error)
