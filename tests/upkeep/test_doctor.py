"""A home with a fault of each kind: it is found and named, the server says it clearly, and what can be saved is."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from lapis.domain import settings
from lapis.domain.metrics import SCALAR, Point
from lapis.errors import AzureMLException, UserErrorException
from lapis.machine import json_files
from lapis.server.app import make_system
from lapis.server.control.models import NewModel
from lapis.server.control.runs import NewRun
from lapis.server.control.stores import open_stores
from lapis.server.store.logged import gathered
from lapis.server.system import System
from lapis.upkeep import alone, doctor
from lapis.upkeep.doctor import NOTE, OK, WRONG, Finding
from lapis.upkeep.salvage import salvage

RUNS, POINTS, PAGE = 300, 20, 4096


def fill(home: Path) -> System:
    system = make_system(settings.load({"LAPIS_HOME": str(home)}), "http://127.0.0.1:1", time.time, lambda: None)
    workspace_id = system.control.workspaces.ensure_default()["id"]
    stores = system.stores
    for number in range(RUNS):
        name = f"run{number:04}"
        new = NewRun(experiment="e", run_id=name, nonce=name, started=True, properties={"long": "x" * 600})
        system.control.runs.create(workspace_id, [new])
        stores.files.put(workspace_id, name, {"outputs/x": stores.blobs.put_bytes(name.encode())}, 1.0)
        stores.metrics.append(workspace_id, name, "main", 0, 1, gathered([Point(SCALAR, 1.0, "loss", 0.5)] * POINTS))
    system.control.models.register(workspace_id, NewModel(name="m", files={"w": stores.blobs.put_bytes(b"weights")[0]}))
    return system


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("original")
    os.chmod(home, 0o700)
    fill(home).stores.database.close()
    os.chmod(home / "lapis.db", 0o600)
    return home


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "home")
    os.chmod(tmp_path / "home", 0o700)
    return tmp_path / "home"


def findings(home: Path, deep: bool = False) -> list[Finding]:
    return list(doctor.examine(settings.load({"LAPIS_HOME": str(home)}), deep))


def wrong(home: Path, deep: bool = False) -> list[Finding]:
    return [each for each in findings(home, deep) if each.level != OK]


def pages_of(home: Path, table: str) -> list[int]:
    """The leaf pages of a table, where rows lie."""
    with closing(sqlite3.connect(home / "lapis.db")) as connection:
        try:
            rows = connection.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,))
            return [row[0] for row in rows]
        except sqlite3.OperationalError:
            return _pages_by_content(home, table)


def _pages_by_content(home: Path, table: str) -> list[int]:
    """Where SQLite has no dbstat: leaf pages of tables are marked with 13, and of a run's row we know a part."""
    data = (home / "lapis.db").read_bytes()
    sign = {"runs": b'"long":', "run_files": b"outputs/x"}[table]
    return [at // PAGE + 1 for at in range(PAGE, len(data), PAGE) if data[at] == 13 and sign in data[at : at + PAGE]]


def break_page(home: Path, number: int) -> None:
    with open(home / "lapis.db", "r+b") as file:
        file.seek((number - 1) * PAGE)
        file.write(os.urandom(PAGE))


def count(home: Path, table: str) -> int:
    with closing(sqlite3.connect(home / "lapis.db")) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_whole_home_has_nothing_wrong(home: Path) -> None:
    assert wrong(home, deep=True) == []


def test_a_corrupt_page_is_found_said_by_the_server_and_what_can_be_read_is_saved(home: Path) -> None:
    pages = pages_of(home, "runs")
    for number in (pages[3], pages[len(pages) // 2]):
        break_page(home, number)
    (found,) = wrong(home)
    assert found.subject == "database" and "damaged" in found.what and "lapis doctor --fix" in found.now

    stores = open_stores(str(home))
    try:
        with pytest.raises(AzureMLException, match="is damaged.*lapis doctor"):
            for number in range(RUNS):
                stores.runs.get(stores.workspaces.find()[0]["id"], f"run{number:04}")
    finally:
        stores.database.close()

    said = doctor.mended(found)
    assert said is not None and "rows were saved" in said and "in runs" in said
    assert wrong(home) == []
    assert RUNS - 40 < count(home, "runs") < RUNS  # all but those of two pages
    assert count(home, "run_files") == count(home, "runs") == count(home, "metric_series")
    assert count(home, "metric_blocks") == count(home, "runs")
    aside = list(home.glob("lapis.db.damaged-*"))
    assert len(aside) == 1 and aside[0].stat().st_size > 100 * PAGE
    stores = open_stores(str(home))  # a server goes on with it
    try:
        workspace_id = stores.workspaces.find()[0]["id"]
        assert stores.runs.get(workspace_id, "run0000").id == "run0000"
        assert stores.files.get(workspace_id, "run0299", "outputs/x").size == 7
    finally:
        stores.database.close()


def test_a_database_that_is_none_is_said_at_the_start_in_one_line(home: Path) -> None:
    (home / "lapis.db").write_bytes(b"this is no database, whatever it was before" * 200)
    with pytest.raises(AzureMLException, match="is damaged .*lapis doctor"):
        open_stores(str(home))
    (found,) = wrong(home)
    said = doctor.mended(found)
    assert said is not None and said.startswith("Not repaired") and "lapis restore" in said
    assert (home / "lapis.db").read_bytes().startswith(b"this is no database")


def test_a_server_started_on_a_damaged_database_says_so_and_shows_no_traceback(home: Path) -> None:
    break_page(home, 1)
    done = subprocess.run(
        [sys.executable, "-m", "lapis.server", "--idle-seconds", "1"],
        env={**os.environ, "LAPIS_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "is damaged" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


def test_a_database_is_not_repaired_under_a_running_server(home: Path) -> None:
    break_page(home, pages_of(home, "runs")[3])
    (found,) = wrong(home)
    with alone.without_server(str(home), "this test"):
        assert "lapis stop" in str(doctor.mended(found))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_page_is_damaged_something_is_saved_or_nothing_is_changed(home: Path, seed: int) -> None:
    chance = random.Random(seed)
    size = (home / "lapis.db").stat().st_size // PAGE
    for _ in range(1 + seed):
        break_page(home, chance.randrange(2, size))
    before = (home / "lapis.db").read_bytes()
    try:
        done = salvage(str(home))
    except UserErrorException as error:
        assert "lapis restore" in error.message and (home / "lapis.db").read_bytes() == before
        return
    assert sum(done.rows.values()) > RUNS
    with closing(sqlite3.connect(home / "lapis.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_blob_that_is_missing_or_damaged_is_named_with_whom_it_belongs_to(home: Path) -> None:
    of_run, of_model = (hashlib.sha256(each).hexdigest() for each in (b"run0007", b"weights"))
    (home / "blobs" / of_run[:2] / of_run[2:]).unlink()
    (found,) = wrong(home)
    assert found.level == WRONG and of_run in found.what and "'outputs/x' of run run0007" in found.what
    (home / "blobs" / of_run[:2] / of_run[2:]).write_bytes(b"run0007")
    (home / "blobs" / of_model[:2] / of_model[2:]).write_bytes(b"WEIGHTS")
    assert wrong(home) == []
    (found,) = wrong(home, deep=True)
    assert "model m:1" in found.what and "damaged" in found.what
    assert "counts as missing" in str(doctor.mended(found))
    (found,) = wrong(home)
    assert "is missing, of model m:1" in found.what


def test_a_home_that_others_can_read_is_closed(home: Path) -> None:
    os.chmod(home, 0o755)
    os.chmod(home / "token", 0o644)
    found = wrong(home)
    assert [each.subject for each in found] == ["permissions", "permissions"]
    for each in found:
        doctor.mended(each)
    assert wrong(home) == [] and (home / "token").stat().st_mode & 0o777 == 0o600


def test_what_a_killed_server_left_is_told(home: Path) -> None:
    json_files.write(str(home / "server.json"), {"pid": 2**22 + 5, "url": "http://127.0.0.1:1", "version": "0"})
    (home / "live" / "w" / "gone").mkdir(parents=True)
    found = wrong(home)
    assert [(each.subject, each.level) for each in found] == [("server", NOTE), ("logs", NOTE)]
    doctor.mended(found[0])
    assert not (home / "server.json").exists()


def test_a_port_that_somebody_else_has_by_now_is_told(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        (home / "port").write_text(str(other.getsockname()[1]))
        assert any("is another's now" in each.what for each in findings(home))
    assert not any("is another's now" in each.what for each in findings(home))


def test_a_home_that_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (found,) = doctor.examine(settings.load({"LAPIS_HOME": str(tmp_path / "file")}))
    assert found.level == WRONG and "is no folder" in found.what
