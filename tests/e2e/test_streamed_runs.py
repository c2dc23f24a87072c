"""Runs whose data is streamed while they read it: what they see, what the log says, and that nothing stays mounted."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Experiment, ScriptRunConfig, Workspace
from azureml.exceptions import UserErrorException
from lapis.domain.data import PIECE
from lapis.machine import apart, mounts
from lapis.machine.processes import started
from lapis.testing import Home, until
from tests.needs import need_fuse
from tests.web import Web

Finish = Callable[..., Any]

CONTENT = os.urandom(2 * PIECE + 999)
HASH = hashlib.sha256(CONTENT).hexdigest()
READ = "import hashlib, sys\nprint('HASH', hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())\n"
# Reads the first byte, says so, and reads all once a file is there.
READ_LATER = """
import hashlib, os, sys, time
file = open(sys.argv[1], 'rb')
file.read(1)
print('begun', flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
file.seek(0)
print('HASH', hashlib.sha256(file.read()).hexdigest())
"""


@pytest.fixture(autouse=True)
def streamed(on_shared_server: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    need_fuse()
    on_shared_server.start()  # before the variable is set, which would be the server's own otherwise
    monkeypatch.setenv("LAPIS_MOUNT", "stream")


def put(web: Web, path: str = "/large.bin", content: bytes = CONTENT, **more: Any) -> Any:
    return Dataset.File.from_files(web.put(path, content, **{"etag": '"v1"', **more})).as_named_input("large")


def text_of(run: Any) -> str:
    return str(run.get_logs().get("user_logs/std_log.txt", ""))


def mounted(home: Home) -> list[str]:
    return mounts.points_below(str(home.path))


def test_a_script_reads_what_is_streamed_and_the_log_says_so_and_why(
    web: Web, finish: Finish, on_shared_server: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finish(READ, arguments=[put(web).as_mount()])
    assert run.get_status() == "Completed", text_of(run)
    lines = text_of(run).splitlines()
    assert lines == [
        "Lapis: input 'large': 1 remote file, 16.8 MB: streamed while the script reads, as LAPIS_MOUNT is stream",
        f"HASH {HASH}",
        "Lapis: input 'large': 16.8 MB of 16.8 MB were fetched for reading it",
    ]
    assert mounted(on_shared_server) == []
    again = finish(READ, arguments=[put(web).as_mount()])
    assert f"HASH {HASH}" in text_of(again) and "0 B of 16.8 MB were fetched" in text_of(again)
    monkeypatch.setenv("LAPIS_MOUNT", "auto")
    third = finish(READ, arguments=[put(web).as_mount()])
    assert f"HASH {HASH}" in text_of(third) and "downloaded" in text_of(third)
    assert len(web.gets("/large.bin")) == 3


def test_several_files_are_laid_out_as_a_download_lays_them(web: Web, finish: Finish, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("here")
    urls = [web.put(name, name.encode()) for name in ("/a.txt", "/b/c.txt")]
    dataset = Dataset.File.from_files([*urls, str(tmp_path / "mine.txt")])
    code = "import os, sys, json\nprint('SEEN' + json.dumps([open(sys.argv[1] + p).read() for p in sys.argv[2:]]))"
    run = finish(code, arguments=[dataset.as_mount(), *dataset.to_path()])
    assert json.loads(text_of(run).partition("SEEN")[2].splitlines()[0]) == ["/a.txt", "/b/c.txt", "here"]


def test_a_place_outside_of_the_run_is_clean_afterwards_and_may_be_used_again(
    web: Web, finish: Finish, tmp_path: Path
) -> None:
    mine, fresh = tmp_path / "mine", tmp_path / "fresh"
    mine.mkdir()
    (mine / "mine.txt").write_text("mine")
    (mine / "empty").mkdir()
    for place in (mine, mine, fresh):
        run = finish(READ, arguments=[put(web).as_mount(str(place))])
        assert f"HASH {HASH}" in text_of(run), run.get_details()
    assert sorted(path.name for path in mine.iterdir()) == ["empty", "mine.txt"]
    assert not fresh.exists()


def test_what_a_script_mounts_itself_and_does_not_stop_is_taken_away_with_it(
    web: Web, finish: Finish, on_shared_server: Home
) -> None:
    code = """
import hashlib, os, sys
from azureml.core import Dataset
mounted = Dataset.File.from_files(sys.argv[1]).mount().start().mount_point
(path,) = [os.path.join(where, name) for where, _, names in os.walk(mounted) for name in names]
print(os.path.realpath(path))
print("HASH", hashlib.sha256(open(path, "rb").read()).hexdigest())
os._exit(0)
"""
    web.put("/own.bin", CONTENT, etag='"v1"')
    run = finish(code, arguments=[web.url("/own.bin")])
    assert f"HASH {HASH}" in text_of(run)
    if apart.level(str(on_shared_server.path)).kind == apart.SHARED:  # else it may not mount, and downloads
        assert str(on_shared_server.path / "streams") in text_of(run)
    until(lambda: mounted(on_shared_server) == [])


def test_small_data_is_downloaded_by_default_and_the_log_says_why(
    web: Web, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAPIS_MOUNT")
    said = "Lapis: input 'large': 1 remote file, 16.8 MB: downloaded before the script starts, as "
    dataset = put(web, "/small.bin")
    assert said + "it is not more than 10 GB" in text_of(finish(READ, arguments=[dataset.as_mount()]))
    assert said + "all of it is in the cache" in text_of(finish(READ, arguments=[dataset.as_mount()]))


def test_files_of_which_no_parts_can_be_had_are_downloaded_whatever_is_asked_for(web: Web, finish: Finish) -> None:
    run = finish(READ, arguments=[put(web, "/whole.bin", ranges=False).as_mount()])
    said = "Lapis: input 'large': 1 remote file: downloaded before the script starts, as no parts of it can be had"
    assert said in text_of(run) and f"HASH {HASH}" in text_of(run)


def test_a_word_that_means_nothing_is_refused_at_submission(
    web: Web, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_MOUNT", "always")
    with pytest.raises(UserErrorException, match="LAPIS_MOUNT='always' cannot be used"):
        finish(READ)


def test_a_file_that_changes_fails_the_script_and_the_log_says_why(
    web: Web, submit: Finish, tmp_path: Path, on_shared_server: Home
) -> None:
    run = submit(READ_LATER, arguments=[put(web, "/changing.bin").as_mount(), str(tmp_path / "go")])
    until(lambda: "begun" in text_of(run))
    put(web, "/changing.bin", bytes(len(CONTENT)), etag='"v2"')
    (tmp_path / "go").touch()
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    assert "Input/output error" in text_of(run) and f"{web.url('/changing.bin')} changed while" in text_of(run)
    assert HASH not in text_of(run) and mounted(on_shared_server) == []


def test_a_cancel_is_obeyed_while_the_script_waits_for_a_server_that_is_silent(
    web: Web, submit: Finish, on_shared_server: Home
) -> None:
    silent = threading.Event()
    run = submit("print('begun', flush=True)\n" + READ, arguments=[put(web, "/silent.bin", gate=silent).as_mount()])
    try:
        until(lambda: web.gets("/silent.bin"))
        run.cancel()
        run.wait_for_completion(raise_on_error=False)
    finally:
        silent.set()
    assert run.get_status() == "Canceled" and mounted(on_shared_server) == []


# -- kill -9


@pytest.fixture
def begun(web: Web, home: Home, script: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run that has read its first byte, and reads on once `go` is there."""
    monkeypatch.chdir(tmp_path)
    source = ScriptRunConfig(script(READ_LATER), "train.py", arguments=[put(web).as_mount(), str(tmp_path / "go")])
    run = Experiment(Workspace.from_config(), "killed").submit(source)
    until(lambda: "begun" in text_of(run))
    return run


def kill(home: Home, run: Any, name: str) -> None:
    record = json.loads((home.path / "work" / run.id / name).read_text())
    os.kill(record.get("keeper", record)["pid"], signal.SIGKILL)


def test_a_script_reads_on_when_its_agent_is_killed_and_the_next_one_unmounts(
    begun: Any, home: Home, tmp_path: Path
) -> None:
    kill(home, begun, "agent.json")
    until(lambda: "another one takes over" in str(begun.get_details()), seconds=30)
    (tmp_path / "go").touch()
    begun.wait_for_completion()
    assert f"HASH {HASH}" in text_of(begun) and "16.8 MB of 16.8 MB were fetched" in text_of(begun)
    assert mounted(home) == []


@pytest.mark.full
def test_a_script_reads_on_when_its_agent_its_keeper_and_the_server_are_killed(
    begun: Any, home: Home, tmp_path: Path
) -> None:
    for victim in ("agent.json", "process.json"):
        kill(home, begun, victim)
    home.kill_server()
    (tmp_path / "go").touch()
    begun.wait_for_completion(raise_on_error=False)
    assert f"HASH {HASH}" in text_of(begun)
    assert mounted(home) == []


@pytest.mark.full
def test_reading_fails_when_the_process_behind_the_mount_is_killed_and_nothing_stays_mounted(
    begun: Any, home: Home, tmp_path: Path
) -> None:
    os.kill(serving_process(home), signal.SIGKILL)
    (tmp_path / "go").touch()
    begun.wait_for_completion(raise_on_error=False)
    assert begun.get_status() == "Failed" and HASH not in text_of(begun)
    assert "Transport endpoint is not connected" in text_of(begun) or "connection abort" in text_of(begun)
    assert mounted(home) == []


@pytest.mark.full
def test_the_next_server_takes_away_what_nobody_answers_for(begun: Any, home: Home) -> None:
    script = json.loads((home.path / "work" / begun.id / "process.json").read_text())["script"]["pid"]
    process = serving_process(home)
    home.kill_server()
    for victim in ("agent.json", "process.json"):
        kill(home, begun, victim)
    for victim in (process, script):
        os.kill(victim, signal.SIGKILL)
    until(lambda: started(process) is None)
    assert len(mounted(home)) == 1
    home.start()
    until(lambda: mounted(home) == [])


def serving_process(home: Home) -> int:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and b"lapis.streaming" in (entry / "cmdline").read_bytes():
                if str(home.path).encode() in (entry / "environ").read_bytes():
                    return int(entry.name)
    raise AssertionError("nobody serves it")
