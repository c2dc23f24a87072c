"""Points are kept in blocks, and nobody can tell from what comes back how they were cut."""

from __future__ import annotations

import json
import random
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lapis.domain.columns import unpack
from lapis.domain.metrics import LIST, ROW, SCALAR, Point, parse_lines, to_line
from lapis.domain.run import RunRecord
from lapis.server.control.stores import Stores, open_stores
from lapis.server.control.workspaces import new_experiment
from lapis.server.store import logged as logged_module
from lapis.server.store import metrics as metrics_module
from lapis.server.store.curves import thinned
from lapis.server.store.logged import gathered, read_journal

WORKSPACE = "w"


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    opened = open_stores(str(tmp_path))
    for run_id in ("a", "b"):
        run = RunRecord(id=run_id, workspace_id=WORKSPACE, experiment="e", created_at=1.0)
        opened.runs.add(run, new_experiment("e", 1.0))
    yield opened
    opened.database.close()


def log(stores: Stores, points: list[Point], run_id: str = "a") -> None:
    at = stores.metrics.position(WORKSPACE, run_id, "j")
    assert stores.metrics.append(WORKSPACE, run_id, "j", at, at + 1, gathered(points)) == at + 1


def blocks(stores: Stores) -> list[tuple[int, int]]:
    with sqlite3.connect(stores.database.path) as connection:
        found = connection.execute("SELECT start, points FROM metric_blocks ORDER BY series_pk, start").fetchall()
    connection.close()
    return found


def streamed(stores: Stores, run_ids: list[str], name: str | None = None) -> dict[tuple[str, str], list[Any]]:
    found: dict[tuple[str, str], list[Any]] = {}
    for some in stores.metrics.values(WORKSPACE, run_ids, name):
        for each in some:
            found.setdefault((each.run_id, each.name), []).extend(unpack(each.packed, each.size))
    return found


VALUES = st.floats(allow_nan=False) | st.integers() | st.text(max_size=3) | st.none() | st.booleans()


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.tuples(st.sampled_from("xy"), VALUES, st.none() | st.integers(0, 9)), max_size=300)))
def test_points_come_back_in_the_order_logged_however_they_came(
    stores: Stores, batches: list[list[tuple[str, Any, int | None]]]
) -> None:
    run_id, everything = uuid.uuid4().hex, []
    stores.runs.add(RunRecord(run_id, WORKSPACE, "e", 1.0), new_experiment("e", 1.0))
    for number, batch in enumerate(batches):
        points = []
        for name, value, step in batch:
            kind = LIST if isinstance(value, bool) else SCALAR
            points.append(Point(kind, float(number), name, [value] if kind == LIST else value, step))
        log(stores, points, run_id)
        everything += points
    names = list(dict.fromkeys(point.name for point in everything))
    by_series = sorted(everything, key=lambda point: names.index(point.name))
    assert repr(stores.metrics.points(WORKSPACE, [run_id])[run_id]) == repr(by_series)
    kept = streamed(stores, [run_id])
    assert repr([value for values in kept.values() for value in values]) == repr([p.value for p in by_series])


def test_a_slow_series_fills_a_block_before_it_begins_the_next(stores: Stores) -> None:
    for number in range(600):
        log(stores, [Point(SCALAR, float(number), "loss", number / 2, number)])
    assert blocks(stores) == [(0, 256), (256, 256), (512, 88)]
    log(stores, [Point(SCALAR, 0.0, "loss", 0.0, number) for number in range(5000)])
    assert blocks(stores) == [(0, 256), (256, 256), (512, 4096), (4608, 992)], "many at once make large ones"
    assert len(stores.metrics.points(WORKSPACE, ["a"])["a"]) == 5600


def test_a_long_text_closes_its_block(stores: Stores) -> None:
    for _ in range(3):
        log(stores, [Point(SCALAR, 1.0, "note", "x" * 10_000)])
    log(stores, [Point(SCALAR, 1.0, "note", "short")])
    log(stores, [Point(SCALAR, 1.0, "note", "shorter")])
    assert blocks(stores) == [(0, 1), (1, 1), (2, 1), (3, 2)]


def test_kinds_of_one_name_stay_apart_and_in_order(stores: Stores) -> None:
    log(stores, [Point(SCALAR, 1.0, "m", 1.0), Point(ROW, 2.0, "m", {"x": 1}), Point(SCALAR, 3.0, "m", 2.0)])
    log(stores, [Point(SCALAR, 4.0, "m", 3.0), Point(SCALAR, 5.0, "m", "text")])
    found = stores.metrics.points(WORKSPACE, ["a"])["a"]
    assert [(p.kind, p.at, p.value) for p in found] == [
        (SCALAR, 1.0, 1.0), (ROW, 2.0, {"x": 1}), (SCALAR, 3.0, 2.0), (SCALAR, 4.0, 3.0), (SCALAR, 5.0, "text"),
    ]  # fmt: skip
    assert blocks(stores) == [(0, 1), (1, 1), (2, 3)]
    (summary,) = stores.metrics.summaries(WORKSPACE, ["a"])["a"]
    assert (summary["count"], summary["last"], summary["min"], summary["max"]) == (5, 3.0, 1.0, 3.0)


def test_what_is_logged_while_it_is_read_is_not_among_it_and_leaves_no_gap(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_module, "_SENT_AT_ONCE", 1)
    for run_id in ("a", "b"):
        log(stores, [Point(SCALAR, 1.0, "loss", float(n)) for n in range(5000)], run_id)
        log(stores, [Point(SCALAR, 1.0, "other", float(n)) for n in range(10)], run_id)
    found: dict[tuple[str, str], list[float]] = {}
    for some in stores.metrics.values(WORKSPACE, ["a", "b"]):
        for each in some:
            found.setdefault((each.run_id, each.name), []).extend(unpack(each.packed, each.size))
        for run_id in ("a", "b"):
            for name in ("loss", "other"):
                log(stores, [Point(SCALAR, 1.0, name, -1.0)] * 700, run_id)
    assert found == {
        (run_id, name): [float(n) for n in range(count)]
        for run_id in ("a", "b")
        for name, count in (("loss", 5000), ("other", 10))
    }


def test_what_is_read_of_a_metric_from_some_point_on_is_just_that(stores: Stores) -> None:
    values = [float(n) for n in range(5000)]
    log(stores, [Point(SCALAR, 1.0, "loss", value) for value in values])
    log(stores, [Point(SCALAR, 1.0, "loss", "no number")])
    for start in (0, 1, 4095, 4096, 4999):
        *numbers, last = stores.metrics.numbers(WORKSPACE, ["a", "b"], "loss", start)["a"]
        assert numbers == values[start:] and last != last
    assert stores.metrics.numbers(WORKSPACE, ["a"], "loss", 5001) == {"a": []}


@pytest.mark.parametrize("count", [3000, 111_000, 250_000])
def test_a_chart_of_a_long_series_keeps_its_ends_and_every_spike(stores: Stores, count: int) -> None:
    values = [random.random() for _ in range(count)]
    spikes = {count // 3: 50.0, count // 2: -50.0, count - 7: 99.0}
    for at, value in spikes.items():
        values[at] = value
    log(stores, [Point(SCALAR, float(n), "loss", value, n) for n, value in enumerate(values)])
    curve = stores.metrics.curve(WORKSPACE, "a", "loss", 1000)
    assert len(curve) <= 1000
    assert curve == sorted(curve)
    assert curve[0] == (0.0, 0, values[0]) and curve[-1] == (count - 1.0, count - 1, values[-1])
    assert {(float(at), at, value) for at, value in spikes.items()} <= set(curve)


def test_a_chart_leaves_out_what_is_no_number(stores: Stores) -> None:
    values = [1.0, float("nan"), "text", 3, None, True, float("inf")]
    log(stores, [Point(SCALAR, float(n), "m", value) for n, value in enumerate(values)])
    assert stores.metrics.curve(WORKSPACE, "a", "m", 10) == [
        (0.0, None, 1.0),
        (3.0, None, 3.0),
        (6.0, None, float("inf")),
    ]


@given(st.lists(st.floats(allow_nan=False), max_size=300), st.integers(4, 50))
def test_what_is_thinned_keeps_its_ends_its_lowest_and_its_highest(numbers: list[float], most: int) -> None:
    kept = thinned(numbers, most)
    assert len(kept) <= most and kept == sorted(set(kept))
    if numbers:
        assert (kept[0], kept[-1]) == (0, len(numbers) - 1)
        assert {min(numbers), max(numbers)} <= {numbers[i] for i in kept}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=6),
    max_leaves=8,
)
ROWS = st.tuples(
    st.sampled_from([SCALAR, LIST, ROW, "other", 3]),
    st.floats() | st.just(1) | st.just("1"),
    st.sampled_from(["x", "y", "", "\n"]),
    ANYTHING,
    st.none() | st.integers() | st.just(1.0),
    st.sampled_from(["", "child", None]),
)


@settings(deadline=None)
@given(
    st.lists(ROWS.map(lambda row: json.dumps(row).encode()) | st.binary() | ANYTHING.map(json.dumps).map(str.encode))
)
@example([b'["scalar",1.0,"x",1,null,""],["scalar",1.0,"x",1,null,""]', b""])
@example([b'["scalar",1', b'.0,"x",1,null,""]'])
@example([b'["scalar",NaN,"x",1,null,""]', b'["scalar",1.0,"x",1e999,null,""]'])
@example([b'["scalar",1.0,"x","\\ud800",null,""]', b'["scalar",1.0,"x",' + b"9" * 400 + b',null,""]'])
@example([b'["scalar",1.0,"x",[],null,""]', b'["list",1.0,"x",[2],null,""]', b'["scalar",1.0,"x",3,null,""]'])
def test_a_journal_read_at_once_holds_what_it_holds_line_by_line(lines: list[bytes]) -> None:
    text = b"\n".join(lines) + b"\n"
    assert repr(read_journal(memoryview(text))) == repr(gathered(parse_lines(text)[0]))


def test_a_journal_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point(SCALAR, float(n), "xyz"[n % 3], n / 7, n, "" if n % 5 else "child") for n in range(1000)]
    text = b"".join(map(to_line, points))
    whole = read_journal(memoryview(text))
    monkeypatch.setattr(logged_module, "_PIECE", 100)
    assert read_journal(memoryview(text)) == whole == gathered(points)
    torn = text[:5000] + b"\n" + text[5000:]
    assert read_journal(memoryview(torn)) == gathered(parse_lines(torn)[0])
