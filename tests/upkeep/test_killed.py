"""Backup, restore and gc, killed before each of the changes that they make to files: nothing is half done."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import running_server

# Defines `survived`: calls in forked processes, the first killed before its first change, the next before its second,
# and so on, until one comes to its end. `check` looks at what each of them left.
KILLING = """
import os, signal, sys
home, folder = sys.argv[1:]

def survived(call, check):
    step = -1
    while True:
        step += 1
        child = os.fork()
        if child == 0:
            left = [step]
            for name in ("replace", "rename", "remove", "unlink", "rmdir"):
                setattr(os, name, counting(getattr(os, name), left))
            call(step)
            os._exit(0)
        ended = os.waitpid(child, 0)[1]
        assert ended in (0, signal.SIGKILL), ended
        check(step, ended == 0)
        if ended == 0:
            return step

def counting(plain, left):
    def counted(*given, **more):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return plain(*given, **more)
    return counted

def files(root):
    return {os.path.relpath(os.path.join(at, name), root): open(os.path.join(at, name), "rb").read()
            for at, _, names in os.walk(root) for name in names}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With a run and its files, and no server."""
    source = tmp_path_factory.mktemp("source") / "file.txt"
    with running_server() as one:
        run = Experiment(Workspace.from_config(), "e").start_logging(snapshot_directory=None)
        for number in range(3):
            source.write_text(f"file {number}\n" * 5000)
            run.upload_file(f"outputs/{number}.txt", str(source))
        run.complete()
        one.kill_server()
        yield one.path


def killed(home: Path, folder: Path, code: str) -> int:
    """How many times it was killed."""
    done = subprocess.run(
        [sys.executable, "-c", KILLING + code, str(home), str(folder)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_restore_that_is_killed_can_be_made_again_and_is_whole(home: Path, tmp_path: Path) -> None:
    assert killed(home, tmp_path, """
from lapis.errors import Conflict
from lapis.upkeep.backup import back_up
from lapis.upkeep.restore import restore

back_up(home, folder + "/backup")
restore(folder + "/backup", folder + "/whole")
whole = files(folder + "/whole")

def check(step, ended):
    place = f"{folder}/{step}"
    if os.path.exists(place + "/lapis.db"):
        there = files(place)
        assert {name: there.get(name) for name in whole} == whole, "a home is one when its database is there"
    else:
        restore(folder + "/backup", place)
        assert files(place) == whole

print(survived(lambda step: restore(folder + "/backup", f"{folder}/{step}"), check))
""") > 3  # fmt: skip


def test_a_backup_that_is_killed_leaves_the_one_before_or_says_so(home: Path, tmp_path: Path) -> None:
    assert killed(home, tmp_path, """
from lapis.errors import UserErrorException
from lapis.upkeep.backup import back_up
from lapis.upkeep.restore import restore

for place in ("backup.tar", "backup"):
    back_up(home, f"{folder}/{place}")
restore(folder + "/backup", folder + "/whole")
whole = files(folder + "/whole")

def check_file(step, ended):
    restore(folder + "/backup.tar", f"{folder}/file-{step}")
    assert files(f"{folder}/file-{step}") == whole

def check_folder(step, ended):
    try:
        restore(folder + "/backup", f"{folder}/folder-{step}")
    except UserErrorException as error:
        assert "was cut off" in error.message and not os.path.exists(f"{folder}/folder-{step}/lapis.db")
        back_up(home, folder + "/backup")
        restore(folder + "/backup", f"{folder}/folder-{step}")
    assert files(f"{folder}/folder-{step}") == whole

times = survived(lambda step: back_up(home, folder + "/backup.tar"), check_file)
assert not [name for name in os.listdir(folder) if name.endswith(".part")], "the next removes what they left"
print(times + survived(lambda step: back_up(home, folder + "/backup"), check_folder))
""") > 1  # fmt: skip


def test_a_collection_that_is_killed_takes_nothing_that_is_named(tmp_path: Path) -> None:
    assert killed(tmp_path / "home", tmp_path, """
import hashlib, time
from dataclasses import replace
from lapis.domain import settings
from lapis.server.app import make_system
from lapis.server.control.runs import NewRun

KEPT = [b"kept %d" % number for number in range(20)] + [b"kept " * 5000, b"kept " * 2_000_000]
LOST = [b"lost %d" % number for number in range(20)] + [b"lost " * 5000, b"lost " * 2_000_000]

def digest(content):
    return hashlib.sha256(content).hexdigest()

def system():
    return make_system(replace(settings.load(), home=home), "http://127.0.0.1:1", time.time, lambda: None)

def fill(step):
    made = system()
    mixed = [content for pair in zip(KEPT, LOST) for content in pair]  # small ones lie in the same pack
    made.stores.blobs.put_all([(digest(content), memoryview(content)) for content in mixed])
    (workspace,) = [each["id"] for each in made.control.workspaces.find()]
    made.control.runs.create(workspace, [NewRun("e", "run", "n", started=True)])
    named = {f"outputs/{number}": digest(content) for number, content in enumerate(KEPT)}
    made.control.files.put_stored(workspace, "run", named)
    made.stores.settle()
    for at, folders, names in os.walk(home + "/blobs"):  # as if nobody had asked for anything for years
        for name in (*folders, *names):
            os.utime(os.path.join(at, name), (1e9, 1e9))

def look(gone):
    blobs = system().stores.blobs
    assert all(blobs.read_whole(digest(content)) == content for content in KEPT)
    assert not gone or blobs.missing([digest(content) for content in LOST]) == [digest(content) for content in LOST]

def apart(work, *given):
    child = os.fork()
    if child == 0:
        work(*given)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

os.mkdir(home)
apart(fill, 0)
print(survived(lambda step: system().control.upkeep.collect(False), lambda step, ended: apart(look, ended)))
""") > 1  # fmt: skip
