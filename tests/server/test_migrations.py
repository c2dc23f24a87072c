"""A database of every release opens in this one, with all that was in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from lapis.domain.metrics import SCALAR, Point, assemble
from lapis.domain.run import RunState
from lapis.domain.run_filter import RunFilter
from lapis.server.control.stores import open_stores
from lapis.server.store import database as database_module
from lapis.server.store.assets import DATASET, Asset
from lapis.server.store.database import HEAD, Database
from lapis.server.store.logged import gathered

SCHEMA = Path(database_module.__file__).with_name("schema.sql")
SAVED = sorted((Path(__file__).parents[1] / "data").glob("schema_*.sql"))


def rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table but Alembic's own, by column."""
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')] for name in tables}
    connection.close()
    found.pop("alembic_version", None)
    return found


def restore(saved: Path, home: Path) -> Path:
    with sqlite3.connect(home / "lapis.db") as connection:
        connection.executescript(saved.read_text())
    connection.close()
    return home / "lapis.db"


@pytest.mark.parametrize("saved", SAVED, ids=lambda path: path.stem)
def test_a_saved_database_is_brought_up_to_date_with_its_rows_intact(saved: Path, tmp_path: Path) -> None:
    path = restore(saved, tmp_path)
    before = rows(path)
    assert sum(map(len, before.values())) > 10
    open_stores(str(tmp_path)).database.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    after = rows(path)
    if "metric_points" in before:
        assert sum(block["points"] for block in after["metric_blocks"]) == len(before.pop("metric_points"))
    before.pop("run_labels", None)  # marks took its place, made of what the runs say themselves
    for name, held in before.items():  # columns may have come; none that was there has another value
        assert [{key: new[key] for key in old} for old, new in zip(held, after[name], strict=True)] == held


def test_a_new_database_is_what_all_migrations_make(tmp_path: Path) -> None:
    """Where they differ after a migration was added: `schema_of` of the migrated one is what schema.sql should hold."""
    config = Config()
    config.set_main_option("script_location", str(SCHEMA.parent / "migrations"))
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    engine.dispose()
    Database(str(tmp_path / "new.db")).close()
    assert schema_of(tmp_path / "new.db") == schema_of(tmp_path / "migrated.db") == SCHEMA.read_text()
    assert not any(rows(tmp_path / "migrated.db").values())


def schema_of(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        made = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
        ).fetchall()
        (version,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    connection.close()
    lines = [line.rstrip() for (sql,) in made for line in f"{sql.strip()};".splitlines() if line.strip()]
    return "\n".join([*lines, f"INSERT INTO alembic_version VALUES ('{version}');\n"])


def test_a_new_database_that_was_cut_short_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(database_module._statements(SCHEMA.read_text()))
    monkeypatch.setattr(database_module, "_statements", lambda script: iter([*whole[:9], "CREATE NONSENSE;"]))
    with pytest.raises(Exception, match="NONSENSE"):
        Database(str(tmp_path / "x.db"))
    monkeypatch.undo()
    Database(str(tmp_path / "x.db")).close()
    assert schema_of(tmp_path / "x.db") == SCHEMA.read_text()


def test_there_is_a_saved_database_of_each_schema_before_this_one() -> None:
    assert [path.stem for path in SAVED] == [f"schema_{number:04}" for number in range(1, int(HEAD))]


def test_what_the_first_schema_held_can_be_read_and_gone_on_with(tmp_path: Path) -> None:
    restore(SAVED[0], tmp_path)
    stores = open_stores(str(tmp_path))
    try:
        assert [workspace["name"] for workspace in stores.workspaces.find(id="w1")] == ["default"]
        first = stores.runs.get("w1", "first")
        assert first.state is RunState.COMPLETED and first.tags == {"kind": "baseline", "bare": None}
        baseline = RunFilter(workspace_id="w1", tags=(("kind", "baseline"),))
        assert [run.id for run in stores.runs.find(baseline, 10, None)[0]] == ["first"]
        metrics = assemble(stores.metrics.points("w1", ["first"], None)["first"])
        assert metrics == {"loss": [1.0, 0.5, 1 / 3, 0.25, 0.2], "note": "text"}
        assert stores.files.get("w1", "first", "outputs/model.pkl").size == 7
        dataset = stores.assets.add(Asset("d1", "w1", DATASET, "data", 4.0), lambda newest: newest)
        stores.assets.note_use("w1", "first", [(dataset.id, "input", "x")])
        assert [use["run_id"] for use in stores.assets.used_by("w1", "d1")] == ["first"]
    finally:
        stores.database.close()


def test_points_that_had_a_row_each_are_the_same_in_blocks(tmp_path: Path) -> None:
    restore(SAVED[5], tmp_path)
    stores = open_stores(str(tmp_path))
    try:
        points = stores.metrics.points("w1", ["first"])["first"]
        metrics = assemble(points)
        assert str(metrics.pop("odd")) == str([float("nan"), 2, "text", True, 10**30])
        assert metrics == {
            "loss": [1.0, 0.5, 1 / 3, 0.25, 0.2],
            "note": "text",
            "epoch": [0, 1, 2],
            "both": [1.5, 1, "a", None, 2.5],
            "row": {"x": [1, 2], "y": [2.0, None]},
            "table": {"x": [1, 2], "y": [3, 4]},
            "list": [1, 2],
            "image": "aml://artifactId/ExperimentRun/dcid.first/i.png",
        }
        assert [(p.at, p.step) for p in points if p.name == "epoch"] == [(10.0, 0), (11.0, 1), (12.0, 2)]
        assert [(p.at, p.step) for p in points if p.name == "odd"][:2] == [(20.0, None), (21.0, 7)]
        stores.metrics.append("w1", "first", "more", 0, 1, gathered([Point(SCALAR, 13.0, "epoch", 3, 3)]))
        assert assemble(stores.metrics.points("w1", ["first"], "epoch")["first"]) == {"epoch": [0, 1, 2, 3]}
    finally:
        stores.database.close()


def test_a_migration_of_many_points_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    path = restore(SAVED[5], tmp_path)
    many, bad = 210_000, 205_000
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE metric_series SET points = ? WHERE pk = 1", (many,))
        points = ((1, number, float(number), number, number / 8) for number in range(5, many))
        connection.executemany(
            "INSERT INTO metric_points (series_pk, seq, at, step, number) VALUES (?,?,?,?,?)", points
        )
        connection.execute("UPDATE metric_points SET json = 'torn' WHERE series_pk = 1 AND seq = ?", (bad,))
    connection.close()
    with pytest.raises(ValueError):
        open_stores(str(tmp_path))
    halfway = rows(path)
    copied = sum(block["points"] for block in halfway["metric_blocks"])
    assert 200_000 <= copied < bad, "what was copied is kept"
    assert len(halfway["metric_points"]) > many, "and what it was copied from too"

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE metric_points SET json = NULL WHERE series_pk = 1")
    connection.close()
    stores = open_stores(str(tmp_path))
    try:
        loss = stores.metrics.points("w1", ["first"], "loss")["first"]
        assert [point.value for point in loss[5:]] == [number / 8 for number in range(5, many)]
        assert [point.step for point in loss] == [None] * 5 + list(range(5, many))
        assert "metric_points" not in rows(path)
    finally:
        stores.database.close()
