"""Keepers that are forked ahead: each for one order, and gone without one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lapis.agent import launch
from lapis.machine import processes
from lapis.testing import until


def order(folder: Path, code: str) -> launch.Order:
    folder.mkdir()
    variables = {"LAPIS_MEMBER": folder.name, "MARK": "given"}
    return launch.Order([sys.executable, "-c", code], variables, str(folder), str(folder / "log"), str(folder))


def test_a_keeper_that_was_forked_ahead_starts_what_it_is_told(tmp_path: Path) -> None:
    os.environ["OF_THE_AGENT"] = "secret"
    keeper = launch.Keeper()
    code = "import os, signal; print(os.environ.get('MARK'), os.environ.get('OF_THE_AGENT'), os.getcwd()); " \
           "print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"  # fmt: skip
    try:
        launch.start(order(tmp_path / "a", code), keeper)
    finally:
        del os.environ["OF_THE_AGENT"]
    until(lambda: launch.read(str(tmp_path / "a"), "exit.json"))
    exited = launch.read(str(tmp_path / "a"), "exit.json") or {}
    assert exited["code"] == 0 and exited["alone"]
    assert (tmp_path / "a" / "log").read_text() == f"given None {tmp_path / 'a'}\nset()\n"


def test_one_without_an_order_leaves_nothing_behind() -> None:
    before = processes.below(os.getpid())
    keeper = launch.Keeper(users_ahead=os.geteuid() == 0)
    until(lambda: len(processes.below(os.getpid()) - before) == (3 if os.geteuid() == 0 else 2))
    keeper.dismiss()
    assert processes.below(os.getpid()) <= before


def test_a_keeper_says_when_its_script_has_ended_and_ends_what_it_left(tmp_path: Path) -> None:
    code = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], " \
           "start_new_session=True).pid)"  # fmt: skip
    end = launch.start(order(tmp_path / "a", code))
    assert end is not None
    os.read(end, 1)
    os.close(end)
    assert launch.read(str(tmp_path / "a"), "exit.json") is not None
    left = int((tmp_path / "a" / "log").read_text())
    until(lambda: processes.started(left) is None)
