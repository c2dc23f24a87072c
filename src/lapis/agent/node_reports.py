"""What follows from what the nodes of a run tell of themselves. Pure.

A node tells its address and ports, then `state`: `idle` (only what serves others is left), `done` or `failed`, with
the `verdict` and the time `at` which it was clear; and `delivered` once all that it had to send is with the server,
with what of it is `lost` because it could not be sent, and `notices` about the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lapis.agent.verdict import Verdict, of_rank

Told = Mapping[str, Any]


def missing(nodes: Sequence[Told], count: int) -> list[int]:
    """The numbers of those that have not said where they are."""
    here = {each["index"] for each in nodes if each and each.get("ports") is not None}
    return [number for number in range(count) if number not in here]


def failure(nodes: Sequence[Told]) -> Verdict | None:
    """The first failure of any node: what came after it is as a rule its consequence."""
    failed = sorted((each for each in nodes if each.get("state") == "failed"), key=lambda each: float(each["at"]))
    if not failed:
        return None
    verdict = Verdict(**failed[0]["verdict"])
    said = _said(nodes, (verdict.error or {}).get("rank"))
    return verdict if said is None else of_rank(verdict, int(said["rank"]), said["lines"])


def last_words_are_missing(nodes: Sequence[Told]) -> bool:
    """Whether a rank failed whose node has not told yet what it said last: it may have delivered before it knew."""
    error = getattr(failure(nodes), "error", None) or {}
    return "rank" in error and not error.get("lastLines") and _said(nodes, error["rank"]) is None


def _said(nodes: Sequence[Told], rank: Any) -> Any:
    return next((each["said"] for each in nodes if each.get("said") and each["said"]["rank"] == rank), None)


def nobody_is_busy(nodes: Sequence[Told]) -> bool:
    return all(each.get("state") in ("idle", "done") for each in nodes)


def all_delivered(nodes: Sequence[Told], count: int) -> bool:
    return not undelivered(nodes, count)


def undelivered(nodes: Sequence[Told], count: int) -> list[int]:
    """The numbers of those that have not said that all they had is with the server."""
    done = {each["index"] for each in nodes if each.get("delivered")}
    return [number for number in range(count) if number not in done]


def notices(nodes: Sequence[Told]) -> list[str]:
    """What the nodes but the head, which speaks for itself, have to say of what they sent."""
    return [f"Node {each['index']}: {what}" for each in nodes[1:] for what in each.get("notices") or ()]


def lost(nodes: Sequence[Told]) -> list[str]:
    """What the nodes could not send."""
    return [f"node {each['index']}: {what}" for each in nodes for what in each.get("lost") or ()]
