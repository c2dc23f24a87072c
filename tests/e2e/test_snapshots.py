"""A folder's way to the server and into a run: only what is missing travels, and nothing of it is lost or mixed up."""

from __future__ import annotations

import os
import random
import shutil
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from azureml.core import Experiment, ScriptRunConfig, Workspace
from azureml.exceptions import AzureMLException
from lapis.client.http_client import Client, Endpoint
from lapis.client.snapshot_sending import send_snapshot
from lapis.domain.packs import SMALL
from lapis.errors import SnapshotException, Unavailable
from lapis.sdk.runs.run_files import RunFiles
from lapis.testing import Home

SUM = "import glob, os; print(sum(os.path.getsize(n) for n in glob.glob('data/*/*')))"
FILES, SIZE = 300, 40_000  # 12 MB: several batches, the last of them not full


def project(place: Path, seed: int = 0, files: int = FILES, size: int = SIZE) -> Path:
    chance = random.Random(seed)
    for number in range(files):
        file = place / "data" / f"part{number % 7}" / f"file{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(chance.randbytes(size))
    (place / "train.py").write_text(SUM)
    return place


@pytest.fixture
def own_workspace(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(tmp_path)
    return Workspace.from_config()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sent in several batches."""
    return project(tmp_path / "project")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Sent along with the list of its files."""
    return project(tmp_path / "project", files=60, size=1000)


def packs_of(home: Home) -> list[Path]:
    return sorted((home.path / "blobs" / "packs").iterdir())


def loose_of(home: Home) -> set[str]:
    return {path.parent.name + path.name for path in (home.path / "blobs").glob("??/*")}


def finished(workspace: Workspace, folder: Path) -> Any:
    run = Experiment(workspace, "e").submit(ScriptRunConfig(str(folder), "train.py"))
    run.wait_for_completion(raise_on_error=False)
    return run


def restored(run: RunFiles, tmp_path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(run.restore_snapshot(path=tmp_path / "restored")) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_of_many_files_has_them_all_and_gives_them_back(
    home: Home, own_workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    (folder / "data" / "large").write_bytes(os.urandom(SMALL + 1))
    (folder / "data" / "part0" / "twin").write_bytes((folder / "data" / "part1" / "file1").read_bytes())
    run = finished(own_workspace, folder)
    assert run.get_status() == "Completed", run.get_details()
    assert run._text_of("user_logs/std_log.txt") == f"{(FILES + 1) * SIZE}\n"
    assert packs_of(home), "small files lie together"
    assert restored(run, tmp_path) == content_of(folder)


def test_only_what_changed_is_stored_and_a_folder_that_did_not_is_the_same_snapshot(
    home: Home, own_workspace: Workspace, small: Path, tmp_path: Path
) -> None:
    first = send_snapshot(own_workspace, str(small)).id
    packs, loose = packs_of(home), loose_of(home)
    copy = shutil.copytree(small, tmp_path / "copy")  # its hashes are in no cache
    assert send_snapshot(own_workspace, str(copy)).id == first
    assert (packs_of(home), loose_of(home)) == (packs, loose), "nothing was stored a second time"
    (small / "data" / "part3" / "file3").write_text("another")
    assert send_snapshot(own_workspace, str(small)).id != first
    assert packs_of(home) == packs
    assert len(loose_of(home) - loose) == 2, "the file and the list of files"


def test_what_a_server_has_lost_is_sent_again_though_it_did_not_change(
    home: Home, own_workspace: Workspace, small: Path
) -> None:
    first = send_snapshot(own_workspace, str(small)).id
    for file in (small / "data").rglob("*"):
        os.utime(file, (1e9, 1e9))  # old enough for the cache
    assert send_snapshot(own_workspace, str(small)).id == first
    home.kill_server()
    shutil.rmtree(home.path / "blobs" / "packs")
    assert send_snapshot(own_workspace, str(small)).id == first
    assert finished(own_workspace, small).get_status() == "Completed"


def test_a_damaged_pack_fails_the_run_with_its_name_and_the_next_submit_mends_it(
    home: Home, own_workspace: Workspace, small: Path
) -> None:
    send_snapshot(own_workspace, str(small))
    (pack,) = packs_of(home)
    damaged = bytearray(pack.read_bytes())
    damaged[-1] ^= 1
    pack.write_bytes(damaged)
    run = finished(own_workspace, small)
    assert run.get_status() == "Failed"
    assert f"is damaged on the server's disk, in pack {pack.name}" in run.get_details()["error"]["error"]["message"]
    assert finished(own_workspace, small).get_status() == "Completed"


def test_a_tampered_file_of_a_snapshot_does_not_run_and_the_next_submit_mends_it(
    home: Home, own_workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print('as it was submitted')")
    assert finished(own_workspace, tmp_path).get_status() == "Completed"
    stored = [path for path in (home.path / "blobs").glob("??/*") if path.is_file()]
    (blob,) = [path for path in stored if path.read_bytes() == b"print('as it was submitted')"]
    blob.chmod(0o600)
    blob.write_bytes(b"print('as somebody liked it')")
    run = finished(own_workspace, tmp_path)
    assert run.get_status() == "Failed"
    assert "is damaged on the server's disk" in run.get_details()["error"]["error"]["message"]
    assert finished(own_workspace, tmp_path).get_status() == "Completed"


def test_a_home_of_the_release_before_packs_runs_its_snapshots(
    home: Home, own_workspace: Workspace, small: Path, tmp_path: Path
) -> None:
    first = finished(own_workspace, small)
    home.kill_server()
    shutil.rmtree(home.path / "blobs" / "packs")
    for content in content_of(small).values():
        keep_as_a_file(home, content)
    own = Workspace.from_config()
    run = Experiment(own, "e").submit(ScriptRunConfig(str(small), "train.py"))
    run.wait_for_completion()
    assert run.get_snapshot_id() == first.get_snapshot_id()
    assert restored(run, tmp_path) == content_of(small)
    assert packs_of(home) == []


def keep_as_a_file(home: Home, content: bytes) -> None:
    import hashlib

    digest = hashlib.sha256(content).hexdigest()
    place = home.path / "blobs" / digest[:2] / digest[2:]
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(content)


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_is_killed_while_a_snapshot_comes_costs_time_and_nothing_else(
    seed: int, home: Home, own_workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    chance = random.Random(seed)

    def kill() -> None:
        threading.Event().wait(chance.uniform(0.0, 0.15))
        if home.server_pid is not None:
            home.kill_server()

    killer = threading.Thread(target=kill)
    killer.start()
    sent = send_snapshot(own_workspace, str(folder))
    killer.join()
    run = finished(Workspace.from_config(), folder)
    assert (run.get_status(), run.get_snapshot_id()) == ("Completed", sent.id)
    assert restored(run, tmp_path) == content_of(folder)


def test_two_that_send_the_same_folder_at_once_get_the_same_snapshot(
    home: Home, own_workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    copies = [shutil.copytree(folder, tmp_path / f"copy{number}") for number in range(3)]
    found: list[str] = []
    senders = [
        threading.Thread(target=lambda copy=copy: found.append(send_snapshot(own_workspace, str(copy)).id))
        for copy in copies
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert len(found) == 3 and len(set(found)) == 1
    assert finished(own_workspace, folder).get_status() == "Completed"


def test_a_file_that_cannot_be_read_ends_a_snapshot_that_is_under_way(
    workspace: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = folder / "zz"  # the last one: all others are read, and some of them sent, before
    gone.write_text("x")
    from lapis.client import snapshot

    plan = snapshot.scan(str(folder))
    gone.unlink()
    monkeypatch.setattr(snapshot, "scan", lambda *_: plan)
    with pytest.raises(SnapshotException, match="Cannot read 'zz'"):
        send_snapshot(workspace, str(folder))


def test_a_server_that_does_not_answer_is_said_and_nobody_waits_for_ever(folder: Path, workspace: Workspace) -> None:
    class Nowhere(Endpoint):
        patience = 0.0

    nowhere: Any = SimpleNamespace(_client=Client(Nowhere("http://127.0.0.1:9", "t")), _base="/workspaces/w")
    with pytest.raises(Unavailable, match="does not answer"):
        send_snapshot(nowhere, str(folder))


def test_what_the_server_refuses_is_raised_by_the_call(
    on_shared_server: Home, workspace: Workspace, folder: Path
) -> None:
    url = workspace._client.endpoint.find()[0]
    stranger: Any = SimpleNamespace(_client=Client(Endpoint(url, "wrong")), _base=workspace._base)
    with pytest.raises(AzureMLException, match="token is not this server's"):
        send_snapshot(stranger, str(folder))
