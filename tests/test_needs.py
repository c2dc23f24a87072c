"""What tests need from Debian is installed after any other apt that is at work, and by one test process at a time."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import needs
from tests.turns import turn

APT = """#!{python}
# Stands for apt-get, which only root may call, and complains as it does when another one updates the lists.
import os, sys
here = {here!r}
with open(here + "/calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if "update" in sys.argv and os.path.exists(here + "/busy"):
    sys.exit("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)")
"""
Calls = Callable[[], list[str]]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    apt = tmp_path / "apt-get"
    apt.write_text(APT.format(python=sys.executable, here=str(tmp_path)))
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return lambda: (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []


def test_a_package_is_installed_once_dpkg_is_free(calls: Calls) -> None:
    assert needs.install("hello") == ""
    assert calls() == ["-q update", "-q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends hello"]


def test_the_lists_of_packages_are_asked_for_until_no_other_apt_has_them(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "busy").touch()

    def pause(seconds: float) -> None:
        if len(calls()) == 3:
            (tmp_path / "busy").unlink()

    monkeypatch.setattr(needs, "pause", pause)
    assert needs.install("hello") == ""
    assert [call.split()[1] for call in calls()] == ["update", "update", "update", "update", "-o"]


def test_an_apt_that_never_ends_is_named_as_the_reason(calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "busy").touch()
    assert needs.install("hello", patience=0.0).startswith(
        "another apt has held the lists of packages for 0 s: E: Could not get lock /var/lib/apt/lists/lock"
    )
    assert set(calls()) == {"-q update"}, "nothing is installed from old lists"


def test_a_turn_is_waited_for_and_ends_with_its_process(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    code = f"from tests.turns import turn\nwith turn({str(file)!r}):\n    print('mine', flush=True)\n    input()"
    root = Path(__file__).parents[1]
    other = subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "mine\n"
    with open(file) as probe, pytest.raises(BlockingIOError):
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    other.kill()
    other.communicate()
    with turn(file):
        assert file.exists()
