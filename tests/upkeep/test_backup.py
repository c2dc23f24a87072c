"""A backup of a home at work, brought back into an empty one: everything is there, or nothing is."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lapis.errors import Conflict, UserErrorException
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.data.datastore import Datastore
from lapis.sdk.models.model import Model
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.runs.run import Run
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home, running_server, until
from lapis.upkeep.backup import back_up
from lapis.upkeep.restore import INTERRUPTED, restore

TRAIN = """
import os
from azureml.core import Run
run = Run.get_context()
for step in range(200): run.log("loss", 1 / (step + 1))
print("trained")
os.makedirs("outputs", exist_ok=True)
open("outputs/model.bin", "wb").write(os.urandom(100_000))
"""
WAITS = """
import os, time
from azureml.core import Run
Run.get_context().log("begun", 1)
print("said before the backup", flush=True)
while not os.path.exists({gate!r}): time.sleep(0.02)
"""


def rows(home: Path) -> dict[str, list[Any]]:
    """Every row of every table."""
    with closing(sqlite3.connect(home / "lapis.db")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"'))) for name in tables}


def hashes(home: Path, *below: str) -> dict[str, str]:
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in below
        for path in sorted((home / folder).rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """One for all tests here: none of them hurts it."""
    with running_server() as one:
        yield one


@pytest.fixture(scope="module")
def filled(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A home with a run, its metrics and outputs, a model, a file in a datastore, and stored credentials."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "train.py").write_text(TRAIN)
    workspace = Workspace.from_config()
    run = Experiment(workspace, "e").submit(ScriptRunConfig(str(folder), "train.py"))
    run.wait_for_completion()
    run.register_model("m", "outputs/model.bin", tags={"a": "b"})
    (folder / "data.csv").write_text("1,2\n")
    workspace.get_default_datastore().upload_files([str(folder / "data.csv")], show_progress=False)
    Datastore.register_azure_blob_container(
        workspace, "far", "container", "account", account_key="c2VjcmV0", skip_validation=True
    )
    return run


@pytest.mark.parametrize("place", ["backup", "backup.tar"])
def test_everything_comes_back_into_an_empty_home(
    home: Home, filled: Run, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = back_up(str(home.path), str(tmp_path / place))
    assert done.missing == []
    fresh = Home(tmp_path / "fresh")
    restore(str(tmp_path / place), str(fresh.path))
    assert rows(fresh.path) == rows(home.path)
    everything = ("blobs", "stores", "environments/locks", "environments/resolved", "interactive", "live")
    assert hashes(fresh.path, *everything) == hashes(home.path, *everything)
    for name in ("token", "secrets.key"):
        assert (fresh.path / name).read_bytes() == (home.path / name).read_bytes()
        assert stat.S_IMODE((fresh.path / name).stat().st_mode) == 0o600
    monkeypatch.setenv("LAPIS_HOME", str(fresh.path))
    try:
        workspace = Workspace.from_config()
        run = Run.get(workspace, filled.id)
        assert run.get_status() == "Completed" and run.get_metrics() == filled.get_metrics()
        assert Model(workspace, "m").tags == {"a": "b"}
        Model(workspace, "m").download(str(tmp_path / "got"))
        run.download_file("outputs/model.bin", str(tmp_path / "model.bin"))
        assert (tmp_path / "model.bin").read_bytes() == (tmp_path / "got" / "model.bin").read_bytes()
        assert Datastore.get(workspace, "far").account_key == "c2VjcmV0"
    finally:
        fresh.end()


def test_what_is_in_a_backup_is_its_owners_alone_to_read(home: Home, filled: Run, tmp_path: Path) -> None:
    back_up(str(home.path), str(tmp_path / "b"))
    back_up(str(home.path), str(tmp_path / "b.tar"))
    assert stat.S_IMODE((tmp_path / "b.tar").stat().st_mode) == 0o600
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "b").rglob("*") if path.is_file()}
    assert modes == {0o600} and stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o700


def test_a_second_backup_into_a_folder_copies_what_is_new_and_drops_what_is_gone(
    home: Home, filled: Run, tmp_path: Path
) -> None:
    place = tmp_path / "b"
    first = back_up(str(home.path), str(place))
    extra = filled.experiment.start_logging()
    extra.log("x", 1)
    extra.upload_file("outputs/new.txt", __file__)
    extra.complete()
    second = back_up(str(home.path), str(place))
    assert 0 < second.copied < first.copied + 100_000 and len(second.files) > len(first.files)
    assert second.copied < second.size - 100_000  # the model was there
    restore(str(place), str(tmp_path / "fresh"))
    assert rows(tmp_path / "fresh") == rows(home.path)


def test_a_backup_made_while_a_run_goes_on_holds_all_that_it_names(
    home: Home, filled: Run, script: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    waits = Experiment(Workspace.from_config(), "e").submit(
        ScriptRunConfig(script(WAITS.format(gate=str(gate))), "train.py")
    )
    log = (
        home.path
        / "live"
        / waits.experiment.workspace._base.rpartition("/")[2]
        / waits.id
        / "user_logs"
        / "std_log.txt"
    )
    until(lambda: log.exists() and b"said" in log.read_bytes())
    stop = threading.Event()

    def log_on() -> None:
        run = filled.experiment.start_logging()
        while not stop.is_set():
            run.log("x", 1)
            run.flush()
        run.complete()

    busy = threading.Thread(target=log_on)
    busy.start()
    try:
        back_up(str(home.path), str(tmp_path / "b.tar"))
    finally:
        stop.set()
        busy.join()
    gate.touch()
    assert waits.wait_for_completion()["status"] == "Completed"  # the backup did not hurt it
    fresh = Home(tmp_path / "fresh")
    assert restore(str(tmp_path / "b.tar"), str(fresh.path)).interrupted == 1
    monkeypatch.setenv("LAPIS_HOME", str(fresh.path))
    try:
        again = Run.get(Workspace.from_config(), waits.id)
        assert again.get_status() == "Failed" and INTERRUPTED in again.get_details()["error"]["error"]["message"]
        until(lambda: "user_logs/std_log.txt" in again.get_file_names())
        again.download_file("user_logs/std_log.txt", str(tmp_path / "log.txt"))
        assert (tmp_path / "log.txt").read_text().startswith("said before the backup")
    finally:
        fresh.end()


@pytest.fixture
def backup(home: Home, filled: Run, tmp_path: Path) -> Path:
    back_up(str(home.path), str(tmp_path / "b"))
    return tmp_path / "b"


def test_a_backup_that_was_cut_off_is_recognised_and_nothing_is_restored(
    home: Home, filled: Run, tmp_path: Path
) -> None:
    back_up(str(home.path), str(tmp_path / "whole.tar"))
    size = (tmp_path / "whole.tar").stat().st_size
    with tarfile.open(tmp_path / "whole.tar") as tar:
        last = tar.getmembers()[-1].offset
    for length in (0, size // 3, size // 2, last, last + 600):
        (tmp_path / "cut.tar").write_bytes((tmp_path / "whole.tar").read_bytes()[:length])
        with pytest.raises(UserErrorException, match="Nothing was restored"):
            restore(str(tmp_path / "cut.tar"), str(tmp_path / "fresh"))
        assert not (tmp_path / "fresh" / "lapis.db").exists() and not (tmp_path / "fresh" / "restoring").exists()


def test_a_damaged_file_of_a_backup_is_named_and_nothing_is_restored(backup: Path, tmp_path: Path) -> None:
    blob = max((backup / "blobs").rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(UserErrorException, match=f"{blob.name}.*damaged"):
        restore(str(backup), str(tmp_path / "fresh"))
    blob.unlink()
    with pytest.raises(UserErrorException, match=f"{blob.name}.*lacking"):
        restore(str(backup), str(tmp_path / "fresh"))
    shutil.rmtree(tmp_path / "fresh")
    blob.write_bytes(whole)
    restore(str(backup), str(tmp_path / "fresh"))


def test_a_home_with_runs_in_it_is_not_restored_over(home: Home, backup: Path) -> None:
    before = rows(home.path)
    with pytest.raises(Conflict, match="holds runs already"):
        restore(str(backup), str(home.path))
    assert rows(home.path) == before


def test_a_backup_goes_neither_into_its_home_nor_over_somebody_elses_files(
    home: Home, filled: Run, tmp_path: Path
) -> None:
    with pytest.raises(UserErrorException, match="another disk"):
        back_up(str(home.path), str(home.path / "backup"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(UserErrorException, match="is no backup and not empty"):
        back_up(str(home.path), str(tmp_path / "mine"))
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]
    with pytest.raises(UserErrorException, match="is no backup and not empty"):
        back_up(str(home.path), str(tmp_path / "mine" / "thesis.txt"))
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"
    for place in ("", str(tmp_path / "b.tar.gz")):
        with pytest.raises(UserErrorException, match="a folder, or a file that ends with .tar"):
            back_up(str(home.path), place)
    with pytest.raises(UserErrorException, match="nothing to back up"):
        back_up(str(tmp_path / "mine"), str(tmp_path / "b"))


def test_a_file_that_leads_out_of_the_home_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        tar.add(__file__, "../evil.txt")
    with pytest.raises(UserErrorException, match="no file of a backup"):
        restore(str(tmp_path / "evil.tar"), str(tmp_path / "fresh"))
    assert not (tmp_path / "evil.txt").exists()
