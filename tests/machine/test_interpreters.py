"""Which Pythons the machine has: each is asked, none is believed."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from lapis.machine.interpreters import interpreters


def test_the_python_that_asks_is_among_them_by_its_real_path() -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    assert (os.path.realpath(sys.executable), version) in [(each.path, each.version) for each in interpreters()]


def test_newer_ones_come_first_and_none_is_older_than_3_7() -> None:
    minors = [tuple(map(int, each.version.split(".")[:2])) for each in interpreters()]
    assert minors == sorted(minors, reverse=True) and min(minors) >= (3, 7)
    paths = [each.path for each in interpreters()]
    assert len(paths) == len(set(paths))


def program(path: Path, says: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_one_that_does_not_run_or_is_too_old_is_left_out_until_its_file_changes(folder: Path) -> None:
    path = program(folder / "python3.8", "exit 1")
    assert path not in [each.path for each in interpreters()]
    os.utime(program(folder / "python3.8", "echo cpython final 3.6.15"), (1, 1))
    assert path not in [each.path for each in interpreters()]
    os.utime(program(folder / "python3.8", "echo cpython final 3.8.20 zlib"), (2, 2))  # it lacks zlib
    assert path not in [each.path for each in interpreters()]
    os.utime(program(folder / "python3.8", "echo cpython final 3.8.20"), (3, 3))
    assert (path, "3.8.20") in [(each.path, each.version) for each in interpreters()]


def test_programs_that_only_sound_like_it_are_not_asked(folder: Path) -> None:
    program(folder / "python3-config", f"touch {folder}/asked")
    interpreters()
    assert not (folder / "asked").exists()


def test_lapis_python_comes_first_among_those_of_its_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(folder / "python3.9", "echo cpython final 3.9.99")
    mine = program(folder / "mine" / "python", "echo cpython final 3.9.1")
    monkeypatch.setenv("LAPIS_PYTHON", mine)
    assert next(each.path for each in interpreters() if each.version.startswith("3.9.")) == mine
