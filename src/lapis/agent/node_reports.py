"""What follows from what the nodes of a run tell of themselves. Pure.

A node tells its address and ports, then `state`: `idle` (only what serves others is left), `done` or `failed`, with
the `verdict` and the time `at` which it was clear; and `delivered` once all that it had to send is with the server.
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
    rank = (verdict.error or {}).get("rank")
    said = next((each["said"] for each in nodes if each.get("said") and each["said"]["rank"] == rank), None)
    return verdict if said is None else of_rank(verdict, int(said["rank"]), said["lines"])


def nobody_is_busy(nodes: Sequence[Told]) -> bool:
    return all(each.get("state") in ("idle", "done") for each in nodes)


def all_delivered(nodes: Sequence[Told], count: int) -> bool:
    return sum(1 for each in nodes if each.get("delivered")) == count
