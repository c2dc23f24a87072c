"""What becomes of a service when something happens: it is updated, a revision is ready, a run ends, a version goes.

Pure: each takes what there is and returns what there is then. Nothing else in this code base changes a service's slots.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Collection, Iterable, Mapping

from lapis.domain.service import BROKEN, READY, STARTING, Leaving, ServiceRecord, Slot, Version
from lapis.domain.service_content import Content
from lapis.domain.service_settings import ServiceSettings

MOST_FALSE_STARTS = 3  # times that a first start may be killed from outside before it counts as failed
KEPT_RUNS = 5
LONGEST_BACKOFF = 60.0
STEADY = 60.0  # seconds that a service must have lived before its next restart counts as the first again
DRAIN = 90.0  # seconds that a front which has handed over may take for what it had begun to answer
UNKNOWN_BY_THEN = 4.0  # seconds after which nobody sends requests to a version that was deleted
_NOT_ITS_FAULT = ("ExitStatusUnknown", "NodeLost", "AgentLost", "Signal")


# -- the service


def rolled(service: ServiceRecord, name: str, content: Content, settings: ServiceSettings, now: float) -> ServiceRecord:
    """The next revision of a version is wanted now; what serves goes on until it is ready."""
    version = service.versions[name]
    before = version.wanted
    slot = Slot(before.revision + 1, content, settings, restart_at=now)
    if before.state == READY:
        return with_version(service, name, replace(version, wanted=slot, serving=before))
    dropped = [before.run] if before.run else []
    return _let_go(with_version(service, name, replace(version, wanted=slot)), dropped, now)


def became_ready(service: ServiceRecord, name: str, run: str, address: str, now: float) -> ServiceRecord:
    """The wanted revision answers in its run; the one before it has handed over, or is to go."""
    version = service.versions.get(name)
    if version is None or version.wanted.run != run:
        return service  # it was updated meanwhile
    wanted = replace(version.wanted, state=READY, error=None, ready_at=now)
    old = version.serving
    leaving = tuple(replace(each, cancel_at=now + DRAIN) if each.until == name else each for each in service.leaving)
    moved = replace(version, wanted=wanted, serving=None, address=address)
    dropped = [old.run] if old is not None and old.run else []
    return _let_go(with_version(replace(service, leaving=leaving), name, moved), dropped, now + DRAIN)


def slot_changed(service: ServiceRecord, name: str, before: Slot, after: Slot) -> ServiceRecord | None:
    """None: the service was updated meanwhile, and has no such slot any more."""
    version = service.versions.get(name)
    if version is None:
        return None
    if _is_same(version.wanted, before):
        return with_version(service, name, replace(version, wanted=after))
    if version.serving is not None and _is_same(version.serving, before):
        return with_version(service, name, replace(version, serving=after))
    return None


def version_deleted(service: ServiceRecord, name: str, now: float) -> ServiceRecord:
    """Where requests come in through it, the default version takes its place, and it goes when that is done."""
    gone = service.versions[name]
    left = replace(service, versions={each: found for each, found in service.versions.items() if each != name})
    if service.gateway != name:
        return _let_go(left, gone.runs, now + UNKNOWN_BY_THEN)
    heir = replace(left.versions[left.default], place=gone.place, port=gone.port)
    left = with_version(replace(left, gateway=left.default), left.default, heir)
    left = rolled(left, left.default, heir.wanted.content, heir.wanted.settings, now)
    return replace(left, leaving=(*left.leaving, *(Leaving(run, until=left.default) for run in gone.runs)))


def runs_gone(service: ServiceRecord, runs: Collection[str]) -> ServiceRecord:
    return replace(service, leaving=tuple(each for each in service.leaving if each.run not in runs))


def with_version(service: ServiceRecord, name: str, version: Version) -> ServiceRecord:
    return replace(service, versions={**service.versions, name: version})


def _let_go(service: ServiceRecord, runs: Iterable[str], cancel_at: float) -> ServiceRecord:
    return replace(service, leaving=(*service.leaving, *(Leaving(run, cancel_at) for run in runs)))


def _is_same(one: Slot, other: Slot) -> bool:
    return (one.revision, one.run) == (other.revision, other.run)


# -- one revision


def started(slot: Slot, run_id: str) -> Slot:
    return replace(slot, run=run_id, runs=(*slot.runs, run_id)[-KEPT_RUNS:], restart_at=None)


def failed(slot: Slot, error: Mapping[str, Any]) -> Slot:
    return replace(slot, state=BROKEN, error=error, restart_at=None)


def ended(slot: Slot, error: Mapping[str, Any] | None, why: str, now: float) -> Slot:
    """Its run is over, although nobody asked it to be: start again, or say that it cannot be."""
    error = error or {"code": "Ended", "message": why}
    false_start = slot.state == STARTING and slot.ready_at is None
    if false_start and (error.get("code") not in _NOT_ITS_FAULT or slot.restarts >= MOST_FALSE_STARTS):
        return failed(slot, error)
    lived = 0.0 if slot.ready_at is None else now - slot.ready_at
    restarts = 0 if lived > STEADY else slot.restarts
    return replace(slot, run=None, restarts=restarts + 1, restart_at=now + backoff(restarts), why=why, error=error)


def backoff(restarts: int) -> float:
    """Seconds to wait before the next start of a service that ended by itself."""
    return min(LONGEST_BACKOFF, 0.5 * 2.0 ** min(restarts, 10)) if restarts else 0.0
