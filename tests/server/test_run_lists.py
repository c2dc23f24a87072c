"""Every list of runs is the one that looking at all runs would give, and none looks at all of them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapis.domain.metrics import SCALAR, Point
from lapis.domain.run import RunRecord, RunState
from lapis.domain.run_filter import Bound, RunFilter, parse_bound
from lapis.domain.service import SERVICE_RUN
from lapis.errors import UserErrorException
from lapis.server.control.stores import Stores, open_stores
from lapis.server.control.workspaces import NewWorkspace, Workspaces, new_experiment
from lapis.server.store import ranking, run_lists
from lapis.server.store.logged import gathered

STATES = [RunState.RUNNING, RunState.COMPLETED, RunState.FAILED, RunState.CANCELED, RunState.QUEUED]


@pytest.fixture
def stores(tmp_path: Path) -> Any:
    opened = open_stores(str(tmp_path))
    yield opened
    opened.database.close()


def workspace(stores: Stores, name: str) -> str:
    return str(Workspaces(stores, lambda: 1.0).create(NewWorkspace(name))["id"])


def add(stores: Stores, run: RunRecord, metrics: dict[str, list[float]]) -> None:
    """As a run comes into being: made, logged to, ended."""
    begun = run if not run.ended else run._replace(state=RunState.RUNNING)
    stores.runs.add(begun, new_experiment(run.experiment, 1.0))
    points = [Point(SCALAR, 1.0, name, value) for name, values in metrics.items() for value in values]
    if points:
        stores.metrics.append(run.workspace_id, run.id, "journal", 0, 1, gathered(points))
    if run.ended:
        stores.runs.change(run.workspace_id, run.id, lambda stored: stored._replace(state=run.state))


def some_runs(chance: random.Random, workspaces: list[str], count: int) -> list[tuple[RunRecord, dict[str, Any]]]:
    made: list[tuple[RunRecord, dict[str, Any]]] = []
    for number in range(count):
        home = chance.choice(workspaces)
        roots = [run.id for run, _ in made if run.workspace_id == home and run.parent_id is None]
        parent = chance.choice(roots) if roots and chance.random() < 0.3 else None
        run = RunRecord(
            id=f"run-{number}",
            workspace_id=home,
            experiment=chance.choice("ef"),
            created_at=1.0,
            state=chance.choice(STATES),
            parent_id=parent,
            root_id=parent,
            type=chance.choice([None, "script", "script", SERVICE_RUN]),
            target=chance.choice([None, "local", "gpu"]),
            tags={key: chance.choice([None, "1", "2"]) for key in "abc" if chance.random() < 0.4},
            properties={"p": chance.choice("xy")} if chance.random() < 0.3 else {},
            archived_at=1.0 if chance.random() < 0.2 else None,
        )
        metrics = {n: [chance.randrange(9) / 2 for _ in range(2)] for n in ("acc", "loss") if chance.random() < 0.7}
        made.append((run, metrics))
    return made


def some_filter(chance: random.Random, workspaces: list[str]) -> RunFilter:
    def maybe(value: Any, otherwise: Any = None, often: float = 0.3) -> Any:
        return value if chance.random() < often else otherwise

    label = (chance.choice("abcd"), chance.choice([None, "1", "2"]))
    bound = Bound(chance.choice(["acc", "loss"]), chance.choice(["<", "<=", ">", ">="]), chance.randrange(9) / 2)
    return RunFilter(
        workspace_id=chance.choice(workspaces),
        experiment=maybe(chance.choice("efg"), often=0.6),
        parent_id=maybe("run-0", often=0.1),
        root_id=maybe("run-1", often=0.1),
        roots_only=maybe(True, False),
        type=maybe(chance.choice(["script", SERVICE_RUN])),
        states=maybe(tuple({chance.choice(STATES).value for _ in range(2)}), ()),
        target=maybe("gpu"),
        tags=maybe((label, ("a", None)), ()),
        properties=maybe((("p", "x"),), (), 0.2),
        bounds=maybe((bound,), (), 0.2),
        archived=maybe(chance.choice([True, None]), False),
        oldest_first=maybe(True, False),
        best_by=maybe((chance.choice(["acc", "loss"]), chance.choice(["maximize", "minimize"])), None, 0.4),
        services=maybe(True, False, 0.2),
    )


def expected(made: list[tuple[RunRecord, dict[str, Any]]], where: RunFilter) -> list[str]:
    """The same by looking at all of them."""
    found = []
    for number, (run, metrics) in enumerate(made):
        best = {bound: max(metrics.get(bound.metric, [None]), key=lambda v: 0.0 if v is None else v if bound.goal == "maximize" else -v) for bound in where.bounds}  # fmt: skip # noqa: E501
        wanted = [
            run.workspace_id == where.workspace_id,
            where.experiment in (None, run.experiment),
            where.parent_id in (None, run.parent_id),
            where.root_id in (None, run.root_id),
            not where.roots_only or run.parent_id is None or run.type == SERVICE_RUN,
            where.type in (None, run.type),
            where.services or where.type == SERVICE_RUN or run.type != SERVICE_RUN,
            not where.states or run.state.value in where.states,
            where.target in (None, run.target),
            all(key in run.tags and value in (None, run.tags[key]) for key, value in where.tags),
            all(key in run.properties and value in (None, run.properties[key]) for key, value in where.properties),
            all(value is not None and run_lists._holds(value, bound) for bound, value in best.items()),
            run.type == SERVICE_RUN or where.archived in (None, run.archived_at is not None),
            where.best_by is None or where.best_by[0] in metrics,
        ]
        if all(wanted):
            key: tuple[Any, ...] = (number,)
            if where.best_by is not None:
                values = metrics[where.best_by[0]]
                key = (max(values) if where.best_by[1] == "maximize" else min(values), number)
            found.append((key, run.id))
    ascending = where.oldest_first if where.best_by is None else where.best_by[1] == "minimize"
    return [run_id for _, run_id in sorted(found, reverse=not ascending)]


def walked(stores: Stores, where: RunFilter, at_once: int) -> list[str]:
    page, cursor = stores.runs.find(where, at_once)
    found = [run.id for run in page]
    while cursor is not None:
        page, cursor = stores.runs.find(where, at_once, cursor)
        found += [run.id for run in page]
    return found


@pytest.mark.parametrize("few", [0, 5000], ids=["along the lists", "few looked at one by one"])
def test_any_filter_in_pages_of_any_size_gives_what_looking_at_all_runs_gives(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(run_lists, "_FEW", few)
    monkeypatch.setattr(run_lists, "_LOOK", 3)
    monkeypatch.setattr(ranking, "AT_ONCE", 10)
    chance = random.Random(few)
    homes = [workspace(stores, "one"), workspace(stores, "two")]
    made = some_runs(chance, homes, 150)
    with stores.database.write():
        for run, metrics in made:
            add(stores, run, metrics)
    for _ in range(400):
        where = some_filter(chance, homes)
        assert walked(stores, where, chance.choice([1, 7, 100])) == expected(made, where), where


def test_what_becomes_of_a_run_becomes_of_its_place_in_every_list(stores: Stores) -> None:
    home = workspace(stores, "one")
    add(stores, RunRecord("a", home, "e", 1.0, state=RunState.RUNNING, tags={"k": "1"}), {"acc": [1.0]})
    best = RunFilter(home, best_by=("acc", "maximize"))

    def change(**values: Any) -> None:
        stores.runs.change(home, "a", lambda run: run._replace(**values))

    def found(where: RunFilter) -> list[str]:
        return [run.id for run in stores.runs.find(where, 10)[0]]

    assert found(best) == found(replace(best, states=("Running",))) == ["a"], "while it runs"
    change(state=RunState.COMPLETED)
    assert found(replace(best, states=("Completed",))) == ["a"] and found(replace(best, states=("Running",))) == []
    stores.metrics.append(home, "a", "late", 0, 1, gathered([Point(SCALAR, 1.0, "late", 2.0)]))
    assert found(RunFilter(home, best_by=("late", "minimize"))) == ["a"], "logged after its end"
    change(tags={"k": "2"})
    assert found(RunFilter(home, tags=(("k", "1"),))) == [] and found(RunFilter(home, tags=(("k", "2"),))) == ["a"]
    change(archived_at=2.0)
    assert found(best) == found(RunFilter(home)) == [] and found(replace(best, archived=True)) == ["a"]
    assert found(RunFilter(home, tags=(("k", None),), archived=True)) == ["a"]
    stores.runs.remove(home, ["a"])
    assert found(RunFilter(home, archived=None)) == found(replace(best, archived=None)) == []
    with stores.database.read() as connection:
        for table in ("run_marks", "metric_series"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0, table


def test_what_has_ended_is_ranked_many_at_a_time_and_found_before_that(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "AT_ONCE", 3)
    home = workspace(stores, "one")
    best = RunFilter(home, best_by=("acc", "maximize"))

    def ranked() -> int:
        with stores.database.read() as connection:
            statement = "SELECT count(*) FROM metric_series WHERE standing IS NOT NULL AND workspace_pk IS NOT NULL"
            return int(connection.exec_driver_sql(statement).scalar_one())

    for number, expected_ranks in enumerate([0, 0, 3, 3, 3, 6]):
        add(stores, RunRecord(f"r{number}", home, "e", 1.0, state=RunState.FAILED), {"acc": [float(number)]})
        assert ranked() == expected_ranks
        assert walked(stores, best, 2) == [f"r{each}" for each in range(number, -1, -1)]


def test_two_things_that_share_a_mark_are_told_apart(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapis.server.store.run_marks.mark", lambda home, place, thing: 7)
    home = workspace(stores, "one")
    add(stores, RunRecord("a", home, "e", 1.0, tags={"k": "1"}), {})
    add(stores, RunRecord("b", home, "e", 1.0, tags={"l": "1"}), {})
    assert walked(stores, RunFilter(home, tags=(("k", "1"),)), 10) == ["a"]


@pytest.mark.parametrize("analyzed", [False, True], ids=["", "after ANALYZE"])
def test_no_list_goes_through_a_table(stores: Stores, tmp_path: Path, analyzed: bool) -> None:
    """Each statement seeks in an index, and sorts nothing."""
    chance = random.Random(1)
    homes = [workspace(stores, "one"), workspace(stores, "two")]
    with stores.database.write():
        for run, metrics in some_runs(chance, homes, 300):
            add(stores, run, metrics)
    if analyzed:
        with stores.database.write() as connection:
            connection.exec_driver_sql("ANALYZE")
        stores.database.close()
        stores = open_stores(str(tmp_path))
    asked: set[str] = set()
    with stores.database.read() as connection:
        driver: Any = connection.connection.driver_connection
        driver.set_trace_callback(asked.add)  # with the values in their places
        try:
            for _ in range(300):
                find_within(stores, connection, some_filter(chance, homes))
        finally:
            driver.set_trace_callback(None)
        assert len(asked) > 100
        for statement in asked:
            explain = "EXPLAIN QUERY PLAN " + statement.replace("Inf", "9e999")
            plan = [row[3] for row in connection.exec_driver_sql(explain)]
            assert plan and not [step for step in plan if step.startswith("SCAN")], (statement, plan)
            assert not [step for step in plan if "TEMP B-TREE FOR ORDER BY" in step], (statement, plan)


def find_within(stores: Stores, connection: Any, where: RunFilter) -> None:
    """On a connection that is watched."""
    from lapis.server.store.runs import _home

    run_lists.RunLists(connection, where, _home(connection, where)).page(11, None)


@pytest.mark.parametrize("cursor", ["", "x", "1_2_3", "1_x", "nan", "-5", "9" * 30])
def test_a_cursor_of_something_else_is_refused_in_words(stores: Stores, cursor: str) -> None:
    with pytest.raises(UserErrorException, match="none of this list"):
        stores.runs.find(RunFilter(workspace(stores, "one")), 10, cursor)


def test_a_bound_is_written_as_a_comparison() -> None:
    assert parse_bound("accuracy>=0.9") == Bound("accuracy", ">=", 0.9)
    assert parse_bound(" val loss < 1e-3 ") == Bound("val loss", "<", 0.001)
    for text in ("accuracy", "accuracy=1", "accuracy>high", ">1", "accuracy>"):
        with pytest.raises(UserErrorException, match="does not compare"):
            parse_bound(text)
