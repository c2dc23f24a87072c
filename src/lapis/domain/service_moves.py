"""How a version of a service moves from one revision to the next, and what becomes of one that ended by itself.

A version has the revision that is wanted and, while that one is not ready, the revision that still serves. A revision
lives in one run after the other: `run` is the newest of them, None while the next one is yet to be started.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from lapis.domain.services import READY, STARTING, STEADY, backoff

FAILED = "failed"
MOST_FALSE_STARTS = 3  # times that a first start may be killed from outside before it counts as failed
KEPT_RUNS = 5
_NOT_ITS_FAULT = ("ExitStatusUnknown", "NodeLost", "AgentLost", "Signal")

Slot = Mapping[str, Any]
Version = Mapping[str, Any]


def new_slot(revision: int, content: Mapping[str, Any], settings: Mapping[str, Any], now: float) -> dict[str, Any]:
    return {
        "revision": revision,
        "content": dict(content),
        "settings": dict(settings),
        "state": STARTING,
        "run": None,
        "runs": [],
        "restarts": 0,
        "restart_at": now,
        "ready_at": None,
        "why": None,
        "error": None,
    }


def new_version(slot: Slot, port: int, traffic: int, about: Mapping[str, Any]) -> dict[str, Any]:
    return {"port": port, "address": None, "traffic": traffic, "wanted": dict(slot), "serving": None, **about}


class Moved(NamedTuple):
    version: dict[str, Any]
    dropped: list[str]  # runs that are not wanted any more


def rolled(version: Version, slot: Slot) -> Moved:
    """`slot` is wanted now; what serves goes on until it is ready."""
    before = version["wanted"]
    if before["state"] == READY:
        return Moved({**version, "wanted": dict(slot), "serving": before}, [])
    return Moved({**version, "wanted": dict(slot)}, [before["run"]] if before["run"] else [])


def became_ready(version: Version, now: float, address: str) -> Moved:
    """The wanted revision answers; the one before it has handed over, or is to go."""
    old = version["serving"]
    wanted = {**version["wanted"], "state": READY, "error": None, "ready_at": now}
    dropped = [old["run"]] if old is not None and old["run"] else []
    return Moved({**version, "wanted": wanted, "serving": None, "address": address}, dropped)


def started(slot: Slot, run_id: str) -> dict[str, Any]:
    return {**slot, "run": run_id, "runs": [*slot["runs"], run_id][-KEPT_RUNS:], "restart_at": None}


def failed(slot: Slot, error: Mapping[str, Any]) -> dict[str, Any]:
    return {**slot, "state": FAILED, "error": dict(error), "restart_at": None}


def ended(slot: Slot, error: Mapping[str, Any] | None, why: str, now: float) -> dict[str, Any]:
    """Its run is over, although nobody asked it to be: start again, or say that it cannot be."""
    error = dict(error or {"code": "Ended", "message": why})
    false_start = slot["state"] == STARTING and slot["ready_at"] is None
    if false_start and (error.get("code") not in _NOT_ITS_FAULT or slot["restarts"] >= MOST_FALSE_STARTS):
        return failed(slot, error)
    lived = 0.0 if slot["ready_at"] is None else now - slot["ready_at"]
    restarts = 0 if lived > STEADY else slot["restarts"]
    return {**slot, "run": None, "restarts": restarts + 1, "restart_at": now + backoff(restarts), "why": why,
            "error": error}  # fmt: skip


def content_of(version: Version) -> Mapping[str, Any]:
    content: Mapping[str, Any] = version["wanted"]["content"]
    return content
