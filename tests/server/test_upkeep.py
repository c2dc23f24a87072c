"""Nothing grows for ever, and nothing that anybody needs goes: collecting beside uploads, runs and models."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapis.domain import settings
from lapis.domain.run_filter import RunFilter
from lapis.domain.tree import Tree, TreeEntry
from lapis.errors import Conflict, NotFound
from lapis.machine import rotation
from lapis.server.app import make_system
from lapis.server.control import upkeep
from lapis.server.control.control import Control
from lapis.server.control.models import NewModel
from lapis.server.control.runs import NewRun
from lapis.server.store import blobs as blobs_module
from lapis.server.store import packs as packs_module
from lapis.server.store import snapshots as snapshots_module
from lapis.server.store.blobs import FRESH
from lapis.server.system import System
from lapis.upkeep import alone

LONG_AGO = time.time() - 2 * FRESH


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    """All of a server but its threads and its port."""
    chosen = replace(settings.load({"LAPIS_HOME": str(tmp_path)}), keep_runs_days=30)
    made = make_system(chosen, "http://127.0.0.1:1", time.time, lambda: None)
    yield made
    made.stores.database.close()


@pytest.fixture
def control(system: System) -> Control:
    return system.control


@pytest.fixture
def workspace_id(control: Control) -> str:
    return str(control.workspaces.ensure_default()["id"])


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def grow_old(system: System) -> None:
    """As if nobody had asked for anything for two days."""
    for path in Path(system.home, "blobs").rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    with system.stores.database.write() as connection:
        connection.exec_driver_sql("UPDATE snapshots SET created_at = ?", (LONG_AGO,))
    system.stores.blobs._packs._asked.clear()


def snapshot(system: System, workspace_id: str, *contents: bytes) -> str:
    tree = Tree(TreeEntry(f"{number}.py", digest(each), len(each)) for number, each in enumerate(contents))
    along = [(digest(each), memoryview(each)) for each in contents]
    assert system.control.files.add_snapshot(workspace_id, tree, along) == []
    return tree.id


def make_run(system: System, workspace_id: str, name: str, snapshot_id: str | None = None, **more: Any) -> None:
    new = NewRun(experiment="e", run_id=name, nonce=name, snapshot_id=snapshot_id, started=True, **more)
    system.control.runs.create(workspace_id, [new])


def collected(system: System, dry_run: bool = False) -> dict[str, int]:
    return {
        each["what"]: each["count"] for each in system.control.upkeep.collect(dry_run)["collected"] if each["count"]
    }


def test_what_nothing_names_goes_and_what_anything_names_stays(system: System, workspace_id: str) -> None:
    blobs = system.stores.blobs
    code = snapshot(system, workspace_id, b"print(1)")
    lost = snapshot(system, workspace_id, b"print(2)")
    make_run(system, workspace_id, "run", code)
    for content in (b"weights", b"output", b"nobody's"):
        blobs.put_bytes(content)
    system.control.models.register(workspace_id, NewModel(name="m", files={"weights": digest(b"weights")}))
    system.control.files.put_stored(workspace_id, "run", {"outputs/x": digest(b"output")})
    grow_old(system)

    assert collected(system, dry_run=True) == {"snapshots that no run names": 1, "blobs that nothing names": 3}
    assert blobs.missing([digest(b"nobody's")]) == []  # asking makes it new, so:
    grow_old(system)
    assert collected(system) == {"snapshots that no run names": 1, "blobs that nothing names": 3}
    assert blobs.missing([digest(b"nobody's"), digest(b"print(2)")]) == [digest(b"nobody's"), digest(b"print(2)")]
    assert blobs.missing(map(digest, (b"weights", b"output", b"print(1)"))) == []
    assert [entry.path for entry in system.stores.snapshots.get(code)] == ["0.py"]
    assert not system.stores.snapshots.ask_for(workspace_id, lost, time.time())
    assert collected(system) == {}


def test_a_blob_that_came_within_a_day_is_not_collected(system: System) -> None:
    system.stores.blobs.put_bytes(b"its snapshot is about to come")
    assert collected(system) == {}


def test_whoever_was_told_that_a_blob_is_here_may_still_name_it(system: System, workspace_id: str) -> None:
    blobs = system.stores.blobs
    packed = [f"small {number}".encode() for number in range(20)]
    blobs.put_all([(digest(each), memoryview(each)) for each in packed])
    blobs.put_bytes(b"loose")
    grow_old(system)
    assert blobs.missing([digest(b"loose"), digest(packed[3])]) == []
    assert collected(system) == {}
    code = snapshot(system, workspace_id, b"loose", packed[3])
    make_run(system, workspace_id, "run", code)
    grow_old(system)
    collected(system)
    assert blobs.missing([digest(b"loose"), digest(packed[3])]) == []


def test_a_snapshot_sent_again_is_there_for_the_run_that_follows(system: System, workspace_id: str) -> None:
    code = snapshot(system, workspace_id, b"print(1)")
    grow_old(system)
    assert snapshot(system, workspace_id, b"print(1)") == code
    assert collected(system) == {}
    make_run(system, workspace_id, "run", code)
    assert system.stores.snapshots.get(code)


def test_a_name_that_comes_while_it_is_collected_wins(
    system: System, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was read, then somebody asks for a blob and names it, then blobs are removed."""
    system.stores.blobs.put_bytes(b"weights")
    grow_old(system)
    real = system.stores.snapshots.collect

    def meanwhile(*given: Any) -> int:
        assert system.control.files.missing([digest(b"weights")]) == []
        system.control.models.register(workspace_id, NewModel(name="m", files={"w": digest(b"weights")}))
        return real(*given)

    monkeypatch.setattr(system.stores.snapshots, "collect", meanwhile)
    assert collected(system) == {}
    assert system.stores.blobs.size(digest(b"weights")) == 7


def test_a_pack_of_which_little_is_named_gives_way_to_a_smaller_one(system: System, workspace_id: str) -> None:
    blobs = system.stores.blobs
    packed = [f"small {number}".encode() * 100 for number in range(20)]
    blobs.put_all([(digest(each), memoryview(each)) for each in packed])
    make_run(system, workspace_id, "run", snapshot(system, workspace_id, packed[7]))
    grow_old(system)
    (found,) = [each for each in system.control.upkeep.collect(False)["collected"] if each["what"].startswith("packs")]
    assert found["count"] == 1
    assert blobs.missing(map(digest, packed)) == [digest(each) for each in packed if each != packed[7]]
    assert blobs.read_whole(digest(packed[7])) == packed[7]


def test_runs_go_after_their_time_with_all_they_had_unless_kept(
    system: System, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, real = system.control, system.control.runs._now
    for part in (control.runs, control.runs.endings):
        monkeypatch.setattr(part, "_now", lambda: real() - 40 * 24 * 3600)
    for name in ("old", "tagged", "modelled", "parent"):
        make_run(system, workspace_id, name, tags={"keep": None} if name == "tagged" else {})
        system.stores.blobs.put_bytes(name.encode())
        control.files.put_stored(workspace_id, name, {"outputs/x": digest(name.encode())})
        if name != "parent":
            control.runs.complete(workspace_id, name)
    make_run(system, workspace_id, "child", parent_id="parent")
    control.runs.complete(workspace_id, "child")
    control.models.register(workspace_id, NewModel(name="m", run_id="modelled", path="outputs/x"))
    for part in (control.runs, control.runs.endings):
        monkeypatch.setattr(part, "_now", real)
    make_run(system, workspace_id, "young")
    control.runs.complete(workspace_id, "young")
    grow_old(system)

    assert collected(system, dry_run=True) == {"runs that are past their time": 1, "blobs that nothing names": 1}
    assert collected(system) == {"runs that are past their time": 1, "blobs that nothing names": 1}
    with system.stores.database.read() as connection:
        left = {row[0] for row in connection.exec_driver_sql("SELECT id FROM runs")}
    assert left == {"tagged", "modelled", "parent", "child", "young"}  # the parent of the child has not ended
    control.runs.complete(workspace_id, "parent")
    assert collected(system) == {}


def test_runs_stay_for_ever_where_nothing_else_is_set() -> None:
    assert settings.load({}).keep_runs_days == 0
    assert settings.load({"LAPIS_KEEP_RUNS_DAYS": "90"}).keep_runs_days == 90


def test_nothing_is_collected_while_a_backup_is_made(system: System) -> None:
    with alone.copying(system.home), pytest.raises(Conflict, match="backup"):
        system.control.upkeep.collect(False)
    assert collected(system) == {}


def test_a_log_that_lies_open_after_its_run_ended_is_sealed(system: System, workspace_id: str) -> None:
    make_run(system, workspace_id, "run")
    system.stores.files.append(workspace_id, "run", "logs/a.txt", 0, memoryview(b"said"), 1.0, ())
    with system.stores.database.write() as connection:  # a server killed between verdict and sealing
        connection.exec_driver_sql("UPDATE runs SET state = 'Completed', ended = 1")
    (Path(system.home) / "live" / workspace_id / "gone").mkdir(parents=True)
    assert collected(system) == {"open logs of runs that have ended": 2}
    assert system.stores.files.get(workspace_id, "run", "logs/a.txt").hash == digest(b"said")
    assert list((Path(system.home) / "live" / workspace_id).iterdir()) == []


def test_server_environments_of_earlier_releases_go_unless_a_process_uses_them(system: System) -> None:
    root = Path(system.home) / "server-environments"
    for name in ("old", "used"):
        (root / name / "bin").mkdir(parents=True)
        os.utime(root / name, (LONG_AGO, LONG_AGO))
    import subprocess
    import sys

    user = subprocess.Popen([sys.executable, "-c", "input()", str(root / "used")], stdin=subprocess.PIPE)
    try:
        assert collected(system) == {"server environments of earlier releases": 1}
    finally:
        user.communicate(b"\n")
    assert [path.name for path in root.iterdir() if path.is_dir()] == ["used"]


def test_of_an_endless_log_the_end_is_kept_and_read_and_sealed(
    system: System, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, keep = system.stores.files, 64 << 10
    monkeypatch.setattr(rotation.give_up_beginning, "__defaults__", (keep, None))
    make_run(system, workspace_id, "run")
    line, length = b"a line that a service prints, again and again\n", 0
    for _ in range(500):
        piece = line * 40
        length = files.append(workspace_id, "run", "log.txt", length, memoryview(piece), 1.0, ())
        files.give_up_beginning(workspace_id, "run", "log.txt")
    found = files.get(workspace_id, "run", "log.txt")
    assert found.size == length == 500 * 40 * len(line)  # a position is what it was
    assert files.size_of_live(workspace_id, "run") <= 2 * keep + 8192
    end = b"".join(files.read(workspace_id, "run", found, length - 3 * len(line)))
    assert end == line * 3
    all_there_is = b"".join(files.read(workspace_id, "run", found))
    assert keep <= len(all_there_is) <= 3 * keep and all_there_is.endswith(line)
    system.control.runs.complete(workspace_id, "run")
    sealed = files.get(workspace_id, "run", "log.txt")
    text = b"".join(files.read(workspace_id, "run", sealed))
    assert b"bytes of this log were given up" in text.splitlines()[0] and text.endswith(all_there_is)


def test_nothing_that_is_named_is_lost_while_it_is_collected_all_the_time(
    system: System, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a day made short: many that ask, send and name the same few blobs and delete their runs, beside one that
    collects without a pause."""
    short = 0.5
    for module in (upkeep, blobs_module, snapshots_module):
        monkeypatch.setattr(module, "FRESH", short)
    monkeypatch.setattr(packs_module, "_ASKED_EVERY", short / 4)
    contents = [f"shared {number}".encode() for number in range(40)]
    faults: list[Exception] = []
    removed = 0

    def work(worker: int) -> None:
        chance = random.Random(worker)
        for turn in range(25):
            chosen = chance.sample(contents, 20 if turn % 2 else 3)
            asked = time.time()
            lacking = system.control.files.missing(map(digest, chosen))
            given = [(digest(each), memoryview(each)) for each in chosen if digest(each) in lacking]
            system.control.files.put_blobs(given)
            try:
                name_them(f"run-{worker}-{turn}", chosen)
            except Exception as error:
                if time.time() - asked < short / 2:  # else a slow machine let the day pass, and nothing was promised
                    faults.append(error)
            if chance.random() < 0.8:
                with contextlib.suppress(NotFound):
                    system.control.runs.delete(workspace_id, f"run-{worker}-{turn}")

    def name_them(name: str, chosen: list[bytes]) -> None:
        tree = Tree(TreeEntry(digest(each), digest(each), len(each)) for each in chosen)
        assert system.control.files.add_snapshot(workspace_id, tree, []) == []
        make_run(system, workspace_id, name, tree.id)
        system.control.files.put_stored(workspace_id, name, {"outputs/x": digest(chosen[0])})
        system.control.runs.complete(workspace_id, name)
        for each in system.stores.snapshots.get(tree.id):
            assert digest(system.stores.blobs.read_whole(each.hash)) == each.hash

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        removed += sum(each["count"] for each in system.control.upkeep.collect(False)["collected"])
    assert faults == []
    names = [str(run.id) for run in system.stores.runs.find(RunFilter(workspace_id=workspace_id), 1000)[0]]
    for name in names:
        if system.stores.files.find(workspace_id, name) == []:
            continue  # made after its day had passed
        code = system.stores.snapshots.get(str(system.control.runs.get(workspace_id, name).snapshot_id))
        assert system.stores.blobs.missing(entry.hash for entry in code) == []
    assert names and removed > 0
