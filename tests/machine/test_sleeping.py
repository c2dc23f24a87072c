"""What wakes a process that sleeps until something happens. Each sleep here would last a minute otherwise."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lapis.machine.sleeping import Sleeper


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    yield Sleeper()
    signal.set_wakeup_fd(-1)


def seconds_of(sleep: Callable[[], object]) -> float:
    began = time.monotonic()
    sleep()
    return time.monotonic() - began


def test_a_file_that_grows_wakes_it(sleeper: Sleeper, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    sleeper.watch([str(tmp_path / "log")])
    (tmp_path / "log").write_text("a line")  # before it sleeps: it does not sleep through that
    assert seconds_of(lambda: sleeper.sleep(60.0)) < 30


def test_who_does_not_wait_for_files_sleeps_on_and_learns_of_them_later(sleeper: Sleeper, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    sleeper.watch([str(tmp_path / "log")])
    (tmp_path / "log").write_text("a line")
    assert not sleeper.sleep(0.05, files=False)
    assert sleeper.sleep(60.0)
    assert not sleeper.sleep(0.0)


def test_a_file_that_is_not_there_yet_is_looked_for_again(sleeper: Sleeper, tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    sleeper.watch([path])
    assert seconds_of(lambda: sleeper.sleep(60.0)) < 30
    (tmp_path / "log").write_text("")
    sleeper.watch([path])
    (tmp_path / "log").write_text("a line")
    assert sleeper.sleep(60.0)


def test_a_process_that_ends_wakes_it_once_and_then_it_looks_now_and_then(sleeper: Sleeper) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        threading.Timer(0.1, process.stdin.close).start()
        assert seconds_of(lambda: sleeper.sleep(60.0, [process.pid])) < 30
        assert 0.05 < seconds_of(lambda: sleeper.sleep(60.0, [process.pid])) < 30


def test_a_pipe_wakes_it_once(sleeper: Sleeper) -> None:
    read, write = os.pipe()
    sleeper.hear([read])
    os.write(write, b"x")
    assert seconds_of(lambda: sleeper.sleep(60.0)) < 30
    assert seconds_of(lambda: sleeper.sleep(0.05)) >= 0.05
    os.close(write)


def test_a_signal_wakes_it(sleeper: Sleeper) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert seconds_of(lambda: sleeper.sleep(60.0)) < 30
    finally:
        signal.signal(signal.SIGUSR1, before)
