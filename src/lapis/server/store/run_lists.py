"""Finds the keys of a page of runs: walks in order along what is kept in order, and stops when the page is full.

Nothing is sorted, counted or skipped by number, and no statement leaves SQLite a choice of ways: each reads one stretch
of one index. A list is walked along whichever of the things asked for is the sparsest; the others are looked up run by
run. How long a page takes depends on what is on it, and hardly on how many runs there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, exists, literal_column, select, tuple_

from lapis.domain.run_filter import MAXIMIZE, Bound, RunFilter
from lapis.domain.standing import has_ended, standings
from lapis.errors import UserErrorException
from lapis.server.store import run_marks as marks
from lapis.server.store.prepared import Prepared
from lapis.server.store.tables import metric_series, run_marks, runs, workspaces

Key = tuple[Any, ...]
"""Where a run is in a list: its number, or a value and its number."""
Stretch = Callable[[Key, int], list[Key]]
"""The keys behind a given one, at most so many, in order."""

_LAST = 2**63 - 1  # behind every number of a run
_LOOK = 200  # keys after which two ways are compared
_FEW = 5000  # runs that are ranked one by one sooner than that the ranking of all is gone through
_AT_ONCE = 1000  # runs that are looked up together
_MOST = 8000  # keys of one step along a list
_NONE: ColumnElement[int] = literal_column("0")  # SQLAlchemy would put a parameter of its own in its place


class RunLists:
    """The lists of one filter. `experiment_pk` is that of the experiment it names."""

    def __init__(self, connection: Connection, where: RunFilter, experiment_pk: int | None) -> None:
        self._connection = connection
        self._where = where
        self._experiment_pk = experiment_pk
        self._standings = standings(where)

    def page(self, most: int, cursor: str | None) -> list[Key]:
        """At most `most` keys; the last of each is the number of a run."""
        where = self._where
        after = _parsed(cursor, 1 if where.best_by is None else 2) if cursor is not None else self._start
        if where.best_by is None:
            few = self._few(by_marks=False)
            if few is not None:
                return self._sorted(((pk,) for pk in few), after, most)
            stretches, checks = self._sparsest(after)
            return self._walk(stretches, checks, after, most)
        few = self._few(by_marks=True)
        if few is not None:
            return self._sorted(self._values(few, *where.best_by), after, most)
        checks = [self._has_mark(thing) for thing in self._things] + self._other_checks()
        return self._walk(self._ranked(*where.best_by), checks, after, most)

    # -- ways

    @property
    def _start(self) -> Key:
        if self._where.best_by is None:
            return (-1,) if self._ascending else (_LAST,)
        return (-math.inf, -1) if self._ascending else (math.inf, _LAST)

    @property
    def _ascending(self) -> bool:
        return self._where.oldest_first if self._where.best_by is None else self._where.best_by[1] != MAXIMIZE

    @property
    def _things(self) -> list[marks.Thing]:
        return marks.asked(self._where)

    @property
    def _home(self) -> str:
        if self._experiment_pk is None:
            return marks.of_workspace(self._where.workspace_id)
        return marks.of_experiment(self._experiment_pk)

    def _sparsest(self, after: Key) -> tuple[list[Stretch], list[ColumnElement[bool]]]:
        """Of all ways to the newest or oldest the one with the longest leaps, and what it leaves to check."""
        checks = {thing: self._has_mark(thing) for thing in self._things}
        family = self._family()
        ways: list[tuple[list[Stretch], list[ColumnElement[bool]]]] = []
        if family:
            ways.append((self._below(*family[0]), [self._stands(), self._is_here(), *checks.values()]))
        else:
            ways.append((self._standing_ones(), list(checks.values())))
        for thing in checks:
            others = [check for other, check in checks.items() if other != thing]
            stands = [self._stands()] if self._where.states else []
            ways.append((self._marked(thing), stands + others))
        if len(ways) == 1:
            (chosen,) = ways
        else:
            seen = [self._merged(stretches, after, _LOOK) for stretches, _ in ways]
            leaps = [abs(after[0] - keys[-1][0]) if len(keys) == _LOOK else math.inf for keys in seen]
            chosen = ways[max(range(len(ways)), key=lambda way: (leaps[way], -len(seen[way])))]
        return chosen[0], chosen[1] + self._other_checks()

    def _few(self, by_marks: bool) -> list[int] | None:
        """The runs with something that few have; None if there is no such thing."""
        start = (-1,) if self._where.oldest_first else (_LAST,)
        for thing in self._things if by_marks else ():
            keys = self._merged(self._marked(thing), start, _FEW + 1, self._where.oldest_first)
            if len(keys) <= _FEW:
                return [pk for (pk,) in keys]
        for bound in self._where.bounds:
            stretches = self._ranked(bound.metric, bound.goal)
            begin = (math.inf, _LAST) if bound.goal == MAXIMIZE else (-math.inf, -1)
            keys = self._merged(stretches, begin, _FEW + 1, bound.goal != MAXIMIZE)
            within = [pk for value, pk in keys if _holds(value, bound)]
            if len(within) <= _FEW:
                return within
        return None

    # -- walks

    def _walk(self, stretches: list[Stretch], checks: list[ColumnElement[bool]], after: Key, most: int) -> list[Key]:
        found: list[Key] = []
        step = most if not checks else max(most, _LOOK)
        while len(found) < most:
            keys = self._merged(stretches, after, step)
            found += self._that(keys, checks) if checks else keys
            if len(keys) < step:
                break
            after, step = keys[-1], min(step * 2, _MOST)
        return found[:most]

    def _sorted(self, keys: Iterable[Key], after: Key, most: int) -> list[Key]:
        """Of few keys those that the filter lets through."""
        checks = [self._stands(), self._is_here(), *map(self._has_mark, self._things), *self._other_checks()]
        behind = [key for key in keys if (key > after if self._ascending else key < after)]
        return sorted(self._that(behind, checks), reverse=not self._ascending)[:most]

    def _merged(self, stretches: list[Stretch], after: Key, most: int, ascending: bool | None = None) -> list[Key]:
        ascending = self._ascending if ascending is None else ascending
        if len(stretches) == 1:
            return stretches[0](after, most)
        keys = chain.from_iterable(stretch(after, most) for stretch in stretches)
        return sorted(keys, reverse=not ascending)[:most]

    def _that(self, keys: list[Key], checks: list[ColumnElement[bool]]) -> list[Key]:
        kept: set[int] = set()
        for start in range(0, len(keys), _AT_ONCE):
            some = [key[-1] for key in keys[start : start + _AT_ONCE]]
            kept.update(self._connection.execute(select(runs.c.pk).where(runs.c.pk.in_(some), *checks)).scalars())
        return [key for key in keys if key[-1] in kept]

    # -- stretches

    def _standing_ones(self) -> list[Stretch]:
        home = {"w": self._where.workspace_id} if self._experiment_pk is None else {"e": self._experiment_pk}
        statement = _STANDING[self._experiment_pk is None, self._ascending]
        return [self._stretch(statement, {**home, "s": each}) for each in self._standings]

    def _marked(self, thing: marks.Thing) -> list[Stretch]:
        statement = _MARKED[self._where.oldest_first]
        return [self._stretch(statement, {"m": each}) for each in marks.marks_asked(self._home, self._where, thing)]

    def _below(self, name: str, run_id: str) -> list[Stretch]:
        return [self._stretch(_BELOW[name, self._ascending], {"r": run_id})]

    def _ranked(self, metric: str, goal: str) -> list[Stretch]:
        """Along a metric: what ended runs have, by standing, and what those have that go on, each by itself."""
        statement = _RANKED[self._experiment_pk is None, goal == MAXIMIZE]
        home = {"w": self._where.workspace_id} if self._experiment_pk is None else {"e": self._experiment_pk}
        ended = [each for each in self._standings if has_ended(each)]
        live = sorted(self._unranked(metric, goal), reverse=goal == MAXIMIZE)

        def among_live(after: Key, most: int) -> list[Key]:
            return [key for key in live if (key < after if goal == MAXIMIZE else key > after)][:most]

        return [*(self._stretch(statement, {**home, "n": metric, "s": each}) for each in ended), among_live]

    def _stretch(self, statement: Prepared, values: dict[str, Any]) -> Stretch:
        def keys(after: Key, most: int) -> list[Key]:
            place = dict(zip(("a", "b"), after, strict=False), most=most)
            return statement.tuples(self._connection, {**values, **place})

        return keys

    def _unranked(self, metric: str, goal: str) -> list[Key]:
        value = _value(goal)
        query = select(value, metric_series.c.run_pk).where(metric_series.c.standing.is_(None))
        rows = self._connection.execute(query.where(metric_series.c.name == metric, value.is_not(None)))
        return self._that([tuple(row) for row in rows], [self._is_here(), self._stands()])

    def _values(self, few: list[int], metric: str, goal: str) -> list[Key]:
        value, found = _value(goal), list[Key]()
        for start in range(0, len(few), _AT_ONCE):
            mine = metric_series.c.run_pk.in_(few[start : start + _AT_ONCE])
            query = select(value, metric_series.c.run_pk).where(mine, metric_series.c.name == metric)
            found += [tuple(row) for row in self._connection.execute(query.where(value.is_not(None)))]
        return found

    # -- checks, of a row of runs

    def _stands(self) -> ColumnElement[bool]:
        return runs.c.standing.in_(self._standings)

    def _is_here(self) -> ColumnElement[bool]:
        here = runs.c.workspace_id == self._where.workspace_id
        return here if self._experiment_pk is None else here & (runs.c.experiment_pk == self._experiment_pk)

    def _has_mark(self, thing: marks.Thing) -> ColumnElement[bool]:
        wanted = run_marks.c.mark.in_(marks.marks_asked(self._home, self._where, thing))
        return exists().where(run_marks.c.run_pk == runs.c.pk, wanted)

    def _other_checks(self) -> list[ColumnElement[bool]]:
        where = self._where
        checks = [
            getattr(runs.c, name) == value for name in ("parent_id", "root_id") if (value := getattr(where, name))
        ]
        for bound in where.bounds:
            value = _value(bound.goal)
            holds = {">": value > bound.number, ">=": value >= bound.number, "<": value < bound.number}
            mine = (metric_series.c.run_pk == runs.c.pk) & (metric_series.c.name == bound.metric)
            checks.append(exists().where(mine, holds.get(bound.sign, value <= bound.number)))
        return checks

    def _family(self) -> list[tuple[str, str]]:
        named = (("parent_id", self._where.parent_id), ("root_id", self._where.root_id))
        return [(name, value) for name, value in named if value is not None]


def cursor_of(key: Key) -> str:
    """From where the next page goes on, as a word for addresses."""
    return "_".join(map(repr, key))


def _parsed(cursor: str, length: int) -> Key:
    *value, pk = cursor.split("_")
    try:
        key = (*map(float, value), int(pk))
    except ValueError:
        key = ()
    if len(key) != length or not -1 <= key[-1] <= _LAST:
        raise UserErrorException(f"The cursor {cursor!r} is none of this list: it comes with a page, for the next one.")
    return key


def _holds(value: float, bound: Bound) -> bool:
    if bound.goal == MAXIMIZE:
        return value > bound.number or (bound.sign == ">=" and value == bound.number)
    return value < bound.number or (bound.sign == "<=" and value == bound.number)


def _value(goal: str) -> ColumnElement[float]:
    return metric_series.c.greatest if goal == MAXIMIZE else metric_series.c.least


def _in_order(query: Select[Any], ascending: bool, *columns: ColumnElement[Any]) -> Prepared:
    """The statement of a stretch: what lies behind the values `a` and `b`."""
    names: list[ColumnElement[Any]] = [bindparam(name) for name in ("a", "b")[: len(columns)]]
    place, after = (columns[0], names[0]) if len(columns) == 1 else (tuple_(*columns), tuple_(*names))
    behind: ColumnElement[bool] = place > after if ascending else place < after
    order = columns if ascending else [column.desc() for column in columns]
    return Prepared(query.where(behind).order_by(*order).limit(bindparam("most")).offset(_NONE))


def _standing(whole: bool, ascending: bool) -> Prepared:
    home = runs.c.workspace_id == bindparam("w") if whole else runs.c.experiment_pk == bindparam("e")
    return _in_order(select(runs.c.pk).where(home, runs.c.standing == bindparam("s")), ascending, runs.c.pk)


def _rank(whole: bool, greatest: bool) -> Prepared:
    home = metric_series.c.experiment_pk == bindparam("e")
    if whole:
        own = select(workspaces.c.pk).where(workspaces.c.id == bindparam("w")).scalar_subquery()
        home = metric_series.c.workspace_pk == own
    value = metric_series.c.greatest if greatest else metric_series.c.least
    query = select(value, metric_series.c.run_pk)
    query = query.where(home, metric_series.c.name == bindparam("n"), metric_series.c.standing == bindparam("s"))
    return _in_order(query, not greatest, value, metric_series.c.run_pk)


def _below(column: ColumnElement[Any], ascending: bool) -> Prepared:
    return _in_order(select(runs.c.pk).where(column == bindparam("r")), ascending, runs.c.pk)


_BOTH = (False, True)
_STANDING = {(whole, up): _standing(whole, up) for whole in _BOTH for up in _BOTH}
_RANKED = {(whole, greatest): _rank(whole, greatest) for whole in _BOTH for greatest in _BOTH}
_MARKED = {
    up: _in_order(select(run_marks.c.run_pk).where(run_marks.c.mark == bindparam("m")), up, run_marks.c.run_pk)
    for up in _BOTH
}
_BELOW = {(name, up): _below(runs.c[name], up) for name in ("parent_id", "root_id") for up in _BOTH}
