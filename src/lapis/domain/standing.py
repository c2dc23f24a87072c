"""Where a run stands in lists: one small number for its place and its state, so that every list is a few numbers.

A list of runs is nearly always "those without a parent, not archived, perhaps in some states". What a list asks for is
a set of these numbers, and runs are kept in order within each.
"""

from __future__ import annotations

from lapis.domain.run import ENDED, RunRecord, RunState
from lapis.domain.run_filter import RunFilter
from lapis.domain.service import SERVICE_RUN

_STATES = tuple(state.value for state in RunState)  # their order is kept in databases: new ones come last
_BASE = 16  # standings of one place; more than there are states
ROOT, CHILD, ARCHIVED_ROOT, ARCHIVED_CHILD, SERVICE = range(5)
SQL = (
    f"(CASE WHEN type = '{SERVICE_RUN}' THEN {SERVICE * _BASE} ELSE"
    f" (CASE WHEN parent_id IS NULL THEN {ROOT} ELSE {CHILD * _BASE} END)"
    f" + (CASE WHEN archived_at IS NULL THEN 0 ELSE {ARCHIVED_ROOT * _BASE} END) END)"
    " + (CASE state " + " ".join(f"WHEN '{state}' THEN {at}" for at, state in enumerate(_STATES)) + " END)"
)
"""The same as `standing`, of a row."""


def place(run: RunRecord) -> int:
    if run.type == SERVICE_RUN:
        return SERVICE
    return (CHILD if run.parent_id is not None else ROOT) + (0 if run.archived_at is None else ARCHIVED_ROOT)


def standing(run: RunRecord) -> int:
    return place(run) * _BASE + _STATES.index(run.state.value)


def places(where: RunFilter) -> list[int]:
    """Where the runs are that a filter lets through, whatever their state."""
    if where.type == SERVICE_RUN:
        return [SERVICE]
    found = [ROOT] if where.roots_only else [ROOT, CHILD]
    archived = [each + ARCHIVED_ROOT for each in found]
    found = found + archived if where.archived is None else archived if where.archived else found
    return [*found, SERVICE] if where.services else found


def standings(where: RunFilter) -> list[int]:
    states = [at for at, state in enumerate(_STATES) if not where.states or state in where.states]
    return [each * _BASE + state for each in places(where) for state in states]


def has_ended(standing: int) -> bool:
    return _STATES[standing % _BASE] in ENDED
