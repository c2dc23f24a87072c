"""What runs are looked for by, beside their state: each tag, property, type and target is a number in `run_marks`.

A mark is the hash of where a run is and what it has, and under each mark the runs lie in order. So the newest with a
tag are read as quickly as the newest at all, however rare the tag is and however long its value. Two things may share a
mark, once in a long while: whoever reads by marks looks at the runs themselves too (`has`).
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from sqlalchemy import Connection, bindparam, delete
from sqlalchemy.dialects.sqlite import insert as upsert

from lapis.domain.run import RunRecord
from lapis.domain.run_filter import RunFilter
from lapis.domain.standing import place, places
from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import run_marks

Thing = tuple[str, str, str | None]  # of a kind, a key, and its value: None for any
_ADD = Prepared(upsert(run_marks).on_conflict_do_nothing())
_REMOVE = Prepared(
    delete(run_marks).where(run_marks.c.mark == bindparam("mark"), run_marks.c.run_pk == bindparam("run_pk"))
)


def of_workspace(workspace_id: str) -> str:
    return f"w{workspace_id}"


def of_experiment(experiment_pk: int) -> str:
    return f"e{experiment_pk}"


def mark(home: str, place: int, thing: Thing) -> int:
    kind, key, value = thing
    text = f"{home} {place} {kind} {len(key)} {key}" + ("" if value is None else f"={value}")
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def asked(where: RunFilter) -> list[Thing]:
    """What a filter wants runs to have."""
    found: list[Thing] = [("tag", *label) for label in where.tags]
    found += [("property", *label) for label in where.properties]
    found += [("type", where.type, None)] if where.type is not None else []
    return [*found, ("target", where.target, None)] if where.target is not None else found


def marks_asked(home: str, where: RunFilter, thing: Thing) -> list[int]:
    return [mark(home, each, thing) for each in places(where)]


def has(run: RunRecord, things: list[Thing]) -> bool:
    if not things:
        return True
    own = set(_things(run))
    return all(thing in own for thing in things)


def of_run(run: RunRecord, experiment_pk: int) -> set[int]:
    homes, where = (of_workspace(run.workspace_id), of_experiment(experiment_pk)), place(run)
    return {mark(home, where, thing) for thing in _things(run) for home in homes}


def write(connection: Connection, run_pk: int, before: set[int], after: set[int]) -> None:
    if before - after:
        _REMOVE.run(connection, [{"mark": each, "run_pk": run_pk} for each in before - after])
    if after - before:
        _ADD.run(connection, [{"mark": each, "run_pk": run_pk} for each in after - before])


def _things(run: RunRecord) -> Iterator[Thing]:
    for kind, labels in (("tag", run.tags), ("property", run.properties)):
        for key, value in labels.items():
            yield kind, key, None
            if value is not None:
                yield kind, key, value
    if run.type is not None:
        yield "type", run.type, None
    if run.target is not None:
        yield "target", run.target, None
