"""A server whose disk is full or read-only, or that has no descriptors left: a clear no, nothing lost, and on again."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from lapis.errors import AzureMLException, ServiceException, StorageFull
from lapis.testing import Home, until
from tests.small_disk import SmallDisk, small

__all__ = ["small"]  # the fixture


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(9 << 20))
    return path


def test_a_full_disk_is_told_and_nothing_half_written_stays(
    small: tuple[Home, SmallDisk], large: Path, tmp_path: Path
) -> None:
    home, disk = small
    workspace = Workspace.from_config()
    run = Experiment(workspace, "full").start_logging()
    run.log("x", 1)
    run.flush()
    run.upload_file("before", str(large))
    disk.fill()
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("x" * 100_000)
    with pytest.raises(StorageFull, match="full"):
        run.upload_file("after", str(source / "train.py"))
    with pytest.raises(StorageFull, match="full"):
        Experiment(workspace, "full").submit(ScriptRunConfig(str(source), "train.py"))
    with pytest.raises(StorageFull, match="full"):
        for number in range(1000):  # what fits into the last pages goes in
            run.tag(f"tag-{number}", "x" * 4000)
    assert os.listdir(home.path / "blobs" / "incoming") == []
    assert run.get_metrics() == {"x": 1} and run.get_file_names() == ["before"]
    disk.free()
    own = disk.path / "own"  # one of the same disk is copied in place of sent
    own.write_bytes(os.urandom(5 << 20))
    disk.fill()
    with pytest.raises(StorageFull, match="full"):
        run.upload_file("after", str(own))
    assert os.listdir(home.path / "blobs" / "incoming") == []
    disk.free()
    run.upload_file("after", str(own))
    run.complete()
    assert run.get_status() == "Completed" and run.get_file_names() == ["after", "before"]


def test_a_run_that_completes_on_a_full_disk_has_all_it_logged_when_there_is_room(
    small: tuple[Home, SmallDisk],
) -> None:
    _, disk = small
    run = Experiment(Workspace.from_config(), "full").start_logging()
    run.log("before", 1)
    run.flush()
    disk.fill()
    for number in range(5000):
        run.log("x", number)
    run.log_list("long", list(range(5000)))
    disk.free()
    run.complete()
    assert run.get_metrics() == {"before": 1, "x": list(range(5000)), "long": list(range(5000))}


def test_a_server_that_is_killed_on_a_full_disk_starts_again_with_all_it_had(small: tuple[Home, SmallDisk]) -> None:
    home, disk = small
    workspace = Workspace.from_config()
    with Experiment(workspace, "full").start_logging() as run:
        for number in range(1000):
            run.log("x", number)
    disk.fill()
    home.kill_server()
    disk.free()
    assert Run.get(Workspace.from_config(), run.id).get_metrics() == {"x": list(range(1000))}


def test_a_read_only_disk_is_told(small: tuple[Home, SmallDisk], large: Path) -> None:
    home, _ = small
    run = Experiment(Workspace.from_config(), "full").start_logging()
    blobs = str(home.path / "blobs")
    subprocess.run(["mount", "--bind", blobs, blobs], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", blobs], check=True)
        with pytest.raises(StorageFull, match="read-only"):
            run.upload_file("file", str(large))
    finally:
        subprocess.run(["umount", blobs], check=True)
    run.upload_file("file", str(large))
    run.complete()
    assert run.get_file_names() == ["file"]


def test_a_server_without_descriptors_says_so_and_goes_on_when_there_are_some(home: Home, large: Path) -> None:
    run = Experiment(Workspace.from_config(), "few").start_logging()
    pid = home.server_pid
    assert pid is not None
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(each) for each in os.listdir(f"/proc/{pid}/fd")}
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(set(range(len(used) + 1)) - used), hard))
    try:
        with pytest.raises((ServiceException, AzureMLException), match="Too many open files|unable to open|short of"):
            run.upload_file("file", str(large))
        run.log("x", 1)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    run.upload_file("file", str(large))
    run.complete()
    assert run.get_metrics() == {"x": 1} and run.get_file_names() == ["file"]
    until(lambda: home.server_pid == pid)
