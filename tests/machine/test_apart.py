"""Code that runs apart: what it sees of a hidden folder, who it is, and that it ends as it would have."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lapis.machine import apart
from lapis.machine.apart import OWN_NAMESPACES, OWN_USER, SHARED, Level, Reach

_NOBODY = 65534
_KINDS = [OWN_USER, OWN_NAMESPACES]
Sh = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=_KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each way that this machine can: as root as another user, and as somebody else in namespaces."""
    wanted = str(request.param)
    if os.geteuid() != 0:
        if wanted == OWN_USER or apart.level(str(tmp_path)).kind != OWN_NAMESPACES:
            pytest.skip("needs root, or user namespaces")
        return wanted
    if wanted == OWN_USER and apart.level(str(tmp_path)).kind != OWN_USER:
        pytest.skip("root may not mount here")
    return wanted


@pytest.fixture
def home(kind: str) -> Iterator[Path]:
    """Not below `tmp_path`, whose parents are closed to other users."""
    outer = Path(tempfile.mkdtemp(prefix="lapis-apart-"))
    outer.chmod(0o755)
    yield _filled(outer / "home", kind)
    shutil.rmtree(outer)


def _filled(folder: Path, kind: str) -> Path:
    for place in ("mine", "shown", "other"):
        (folder / place).mkdir(parents=True)
    (folder / "token").write_text("secret")
    (folder / "shown" / "file").write_text("seen")
    (folder / "shown" / "file").chmod(0o400)
    folder.chmod(0o700)
    if kind == OWN_NAMESPACES and os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY)
    return folder


@pytest.fixture
def sh(home: Path, kind: str) -> Sh:
    """`sh('echo hi')` runs a line of shell apart from `home`, but for `mine`, to write, and `shown`, to read."""
    reach = Reach("someone", (str(home),), (str(home / "shown"),), (str(home / "mine"),))

    def run(line: str) -> subprocess.CompletedProcess[str]:
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.dup2(tell, 1)
                os.dup2(tell, 2)
                if kind == OWN_NAMESPACES and os.geteuid() == 0:
                    os.setgroups([])
                    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
                    os.setresuid(_NOBODY, _NOBODY, _NOBODY)
                    _readable_again()
                os.close(told)
                apart.enter(reach, kind)
                os.execv("/bin/sh", ["sh", "-c", line])
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
            os._exit(70)
        os.close(tell)
        with os.fdopen(told) as file:
            said = file.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return subprocess.CompletedProcess([line], code, said, "")

    return run


def _readable_again() -> None:
    """Who changes his user is closed to others, and to himself, until he starts a program."""
    import ctypes

    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)


def test_nothing_of_a_hidden_folder_is_there_but_what_is_given(sh: Sh, home: Path) -> None:
    done = sh(
        f"cd {home}; ls; cat shown/file; cat token; echo x > shown/file; echo x > new; echo hi > mine/made; ls mine"
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["mine", "shown"] and "seen" in lines[2] and lines[-1] == "made"
    assert "secret" not in done.stdout
    assert (home / "shown" / "file").read_text() == "seen" and not (home / "new").exists()
    assert (home / "mine" / "made").read_text() == "hi\n"
    assert (home / "mine" / "made").stat().st_uid == (home / "mine").stat().st_uid, "outside it is the server's"


def test_whoever_started_it_cannot_be_ended_nor_looked_into(sh: Sh, home: Path) -> None:
    me = os.getpid()
    done = sh(
        f"kill -0 {me} && echo killed; cat /proc/{me}/environ && echo read; cat /proc/{me}/root{home}/token; true"
    )
    assert "killed" not in done.stdout and "read" not in done.stdout and "secret" not in done.stdout


def test_it_ends_as_it_would_have(sh: Sh) -> None:
    assert sh("exit 7").returncode == 7
    assert sh("kill -TERM $$").returncode == -signal.SIGTERM
    assert sh("kill -9 $$").returncode == -signal.SIGKILL
    assert sh("true").returncode == 0


def test_no_program_makes_root_of_it(sh: Sh) -> None:
    assert "NoNewPrivs:\t1" in sh("grep NoNewPrivs /proc/self/status").stdout
    assert "CapEff:\t0000000000000000" in sh("grep CapEff /proc/self/status").stdout


def test_what_is_covered_cannot_be_uncovered(sh: Sh, home: Path) -> None:
    tries = (
        f"umount {home}; umount -l {home}; unshare -Urm sh -c 'umount -l {home}; cat {home}/token'; cat {home}/token"
    )
    assert "secret" not in sh(tries).stdout


def test_each_owner_is_another_user_and_always_the_same() -> None:
    users = {apart.user_of(f"run-{number}") for number in range(1000)}
    assert len(users) == 1000 and apart.user_of("run-1") in users and min(users) >= 0x70000000


def test_who_asks_for_it_is_refused_where_it_cannot_be() -> None:
    nothing = Level(SHARED, "root may not mount here")
    assert "root may not mount here" in apart.refused(nothing, {"LAPIS_ISOLATION": "required"})
    assert not apart.refused(nothing, {}) and not apart.refused(Level(OWN_USER), {"LAPIS_ISOLATION": "required"})
    assert apart.level("/nowhere", {"LAPIS_ISOLATION": "off"}).kind == SHARED
    assert "share a user" in apart.said(nothing)
