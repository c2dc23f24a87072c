"""The store keeps values, takes everything once, and opens databases of every release."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lapis.domain.metrics import SCALAR, Point
from lapis.domain.run import RunRecord, RunState, advance
from lapis.domain.run_filter import RunFilter
from lapis.errors import Conflict, NotFound, UserErrorException
from lapis.server.control.stores import Stores, open_stores
from lapis.server.control.workspaces import new_experiment
from lapis.server.store.blobs import BlobFolder
from lapis.server.store.database import HEAD, Database
from lapis.server.store.logged import gathered

WORKSPACE = "w"


@pytest.fixture
def stores(tmp_path: Path) -> Any:
    opened = open_stores(str(tmp_path))
    yield opened
    opened.database.close()


def record(run_id: str, experiment: str = "e", **more: Any) -> RunRecord:
    return RunRecord(id=run_id, workspace_id=WORKSPACE, experiment=experiment, created_at=1.0, **more)


def add(stores: Stores, *runs: RunRecord) -> list[RunRecord]:
    return [stores.runs.add(run, new_experiment(run.experiment, 1.0)) for run in runs]


def point(name: str, value: Any) -> Point:
    return Point(SCALAR, 1.0, name, value)


def test_a_run_comes_back_as_it_was_kept(stores: Stores) -> None:
    (kept,) = add(stores, record("a", tags={"x": None, "y": "1"}, properties={"p": "q"}))
    assert stores.runs.get(WORKSPACE, "a") == kept


def test_runs_of_an_experiment_are_numbered_from_one(stores: Stores) -> None:
    assert [run.number for run in add(stores, record("a"), record("b"), record("c", "other"))] == [1, 2, 1]


def test_the_same_create_again_is_the_same_run_and_another_one_is_a_conflict(stores: Stores) -> None:
    (first,) = add(stores, record("a", nonce="n"))
    assert add(stores, record("a", nonce="n")) == [first]
    with pytest.raises(Conflict, match="'a' exists already"):
        add(stores, record("a", nonce="other"))


def test_many_runs_are_added_all_or_none(stores: Stores) -> None:
    add(stores, record("b"))
    with pytest.raises(Conflict):
        stores.runs.add_many([record("a"), record("b")], new_experiment("e", 1.0))
    with pytest.raises(NotFound):
        stores.runs.get(WORKSPACE, "a")


def test_a_change_that_fails_leaves_the_run_as_it_was(stores: Stores) -> None:
    (kept,) = add(stores, record("a"))
    with pytest.raises(Conflict):
        stores.runs.change(WORKSPACE, "a", lambda run: advance(run, RunState.COMPLETED, reason="", at=2.0))
    assert stores.runs.get(WORKSPACE, "a") == kept


def test_what_several_stores_write_in_one_block_is_kept_together_or_not_at_all(stores: Stores) -> None:
    add(stores, record("a"))

    def log(name: str) -> None:
        stores.metrics.append(WORKSPACE, "a", name, 0, 10, gathered([point(name, 1.0)]))

    with pytest.raises(ZeroDivisionError), stores.database.write():
        log("lost")
        stores.runs.change(WORKSPACE, "a", lambda run: run._replace(display_name="lost"))
        assert stores.runs.get(WORKSPACE, "a").display_name == "lost"  # a read within sees what was written
        assert stores.database.busy
        1 / 0  # noqa: B018
    assert stores.runs.get(WORKSPACE, "a").display_name is None
    assert stores.metrics.points(WORKSPACE, ["a"]) == {"a": []}

    with stores.database.write():
        log("kept")
        stores.runs.change(WORKSPACE, "a", lambda run: run._replace(display_name="kept"))
    assert not stores.database.busy
    assert stores.runs.get(WORKSPACE, "a").display_name == "kept"
    assert stores.metrics.points(WORKSPACE, ["a"]) == {"a": [point("kept", 1.0)]}


def test_another_thread_sees_nothing_of_a_write_before_its_end(stores: Stores) -> None:
    add(stores, record("a"))
    with ThreadPoolExecutor(1) as elsewhere, stores.database.write():
        stores.runs.change(WORKSPACE, "a", lambda run: run._replace(display_name="new"))
        assert elsewhere.submit(stores.runs.get, WORKSPACE, "a").result().display_name is None


def test_filters_narrow_by_tag_property_type_and_state(stores: Stores) -> None:
    add(
        stores,
        record("a", tags={"k": "1"}, properties={"p": "x"}),
        record("b", tags={"k": "2"}),
        record("c", tags={"k": None}, type="t"),
        record("d", parent_id="a", root_id="a"),
    )

    def found(**where: Any) -> list[str]:
        return [run.id for run in stores.runs.find(RunFilter(workspace_id=WORKSPACE, **where), 10)[0]]

    assert found() == ["d", "c", "b", "a"]
    assert found(tags=(("k", None),)) == ["c", "b", "a"]
    assert found(tags=(("k", "2"),)) == ["b"]
    assert found(properties=(("p", "x"),)) == ["a"]
    assert found(type="t") == ["c"]
    assert found(parent_id="a") == ["d"]
    assert found(roots_only=True) == ["c", "b", "a"]
    assert found(states=("Running",)) == []


def test_pages_join_without_gap_or_repetition(stores: Stores) -> None:
    add(stores, *(record(f"r{number}") for number in range(7)))
    seen: list[str] = []
    cursor = None
    while True:
        page, cursor = stores.runs.find(RunFilter(workspace_id=WORKSPACE), 3, cursor)
        seen += [run.id for run in page]
        if cursor is None:
            break
    assert seen == [f"r{number}" for number in range(6, -1, -1)]


def test_journal_bytes_that_were_taken_count_once(stores: Stores) -> None:
    add(stores, record("a"))
    points = gathered([point("m", 1.0), point("m", 2.0)])
    assert stores.metrics.append(WORKSPACE, "a", "j", 0, 10, points) == 10
    assert stores.metrics.append(WORKSPACE, "a", "j", 0, 10, points) == 10, "the same again changes nothing"
    assert stores.metrics.append(WORKSPACE, "a", "j", 12, 20, points) == 10, "a gap is not made"
    assert stores.metrics.append(WORKSPACE, "a", "other", 0, 5, gathered([point("m", 3.0)])) == 5
    assert [p.value for p in stores.metrics.points(WORKSPACE, ["a"])["a"]] == [1.0, 2.0, 3.0]
    (summary,) = stores.metrics.summaries(WORKSPACE, ["a"])["a"]
    assert summary == {"name": "m", "kind": SCALAR, "count": 3, "last": 3.0, "min": 1.0, "max": 3.0}


def test_points_for_a_run_that_is_not_below_are_not_taken(stores: Stores) -> None:
    add(stores, record("a"), record("child", parent_id="a", root_id="a"), record("stranger"))
    points = [
        Point(SCALAR, 1.0, "m", 1.0, None, "child"),
        Point(SCALAR, 1.0, "m", 2.0, None, "stranger"),
    ]
    stores.metrics.append(WORKSPACE, "a", "j", 0, 10, gathered(points))
    found = stores.metrics.points(WORKSPACE, ["child", "stranger"])
    assert [p.value for p in found["child"]] == [1.0]
    assert found["stranger"] == []


@pytest.mark.parametrize(
    "value", [1, 0, -1, True, False, None, "text", "", 1.5, 10**30, float("inf"), [1, "a"], {"x": [1]}]
)
def test_every_kind_of_value_comes_back_as_it_went_in(stores: Stores, value: Any) -> None:
    add(stores, record("a"))
    stores.metrics.append(WORKSPACE, "a", "j", 0, 1, gathered([point("m", value)]))
    (back,) = stores.metrics.points(WORKSPACE, ["a"])["a"]
    assert back.value == value and type(back.value) is type(value)


def test_the_best_runs_by_a_metric_come_first(stores: Stores) -> None:
    for number, value in enumerate([3.0, 1.0, 2.0]):
        add(stores, record(f"r{number}"))
        stores.metrics.append(WORKSPACE, f"r{number}", "j", 0, 1, gathered([point("acc", value)]))
    add(stores, record("without"))
    best = RunFilter(workspace_id=WORKSPACE, experiment="e", best_by=("acc", "maximize"))
    assert [run.id for run in stores.runs.find(best, 2)[0]] == ["r0", "r2"]
    worst = RunFilter(workspace_id=WORKSPACE, experiment="e", best_by=("acc", "minimize"))
    assert [run.id for run in stores.runs.find(worst, 10)[0]] == ["r1", "r2", "r0"]


def test_a_growing_file_takes_overlapping_bytes_once_and_is_sealed_into_a_blob(stores: Stores) -> None:
    add(stores, record("a"))

    def append(offset: int, data: bytes) -> int:
        return stores.files.append(WORKSPACE, "a", "logs/x.txt", offset, memoryview(data), 1.0, ("old/x.txt",))

    assert append(0, b"abc") == 3
    assert append(1, b"bcde") == 5
    assert append(9, b"later") == 5, "a gap is not made"
    stores.files.seal(WORKSPACE, "a")
    stores.files.seal(WORKSPACE, "a")
    for name in ("logs/x.txt", "old/x.txt"):
        file = stores.files.get(WORKSPACE, "a", name)
        assert (file.hash, file.size) == (hashlib.sha256(b"abcde").hexdigest(), 5)
        assert b"".join(stores.files.read(WORKSPACE, "a", file)) == b"abcde"
    assert append(0, b"abcde") == 5, "an agent that repeats itself after the end is answered"


def test_a_blob_with_another_hash_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    blobs = BlobFolder(str(tmp_path))
    with pytest.raises(UserErrorException, match="Nothing was stored"):
        blobs.put([b"content"], "0" * 64)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["", "../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "/", "..%2f" + "a" * 59])
def test_what_is_not_a_hash_names_no_blob(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserErrorException):
        BlobFolder(str(tmp_path)).read(name)


def test_the_schema_after_all_migrations_is_the_one_in_the_tables(tmp_path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    import lapis.server.store as store
    from lapis.server.store.tables import metadata

    database = Database(str(tmp_path / "x.db"))
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()
    config = Config()
    config.set_main_option("script_location", str(Path(store.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_a_database_of_a_newer_release_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    Database(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(Conflict, match="newer release"):
        Database(str(path))


def test_the_log_of_the_database_is_bounded_though_somebody_always_reads(stores: Stores) -> None:
    add(stores, record("a"))
    log, most = f"{stores.database.path}-wal", 0
    ended = threading.Event()

    def read_on() -> None:
        """So many overlap that there is no moment without a reader; each is done after some milliseconds."""
        while not ended.is_set():
            with stores.database.read() as connection:
                cursor = connection.connection.cursor()
                cursor.execute("BEGIN")
                cursor.execute("SELECT count(*) FROM runs").fetchall()
                ended.wait(0.02)
                cursor.execute("ROLLBACK")

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read_on) for _ in range(4)]
        try:
            for number in range(800):
                big = [Point(SCALAR, 1.0, f"m{number % 8}", "x" * 200_000)]
                stores.metrics.append(WORKSPACE, "a", "j", number, number + 1, gathered(big))
                most = max(most, os.path.getsize(log))
        finally:
            ended.set()
    assert [reader.exception() for reader in readers] == [None] * 4
    assert most < 96 << 20
