"""The server's own environment: made once, by one of those that ask, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lapis.client import server_environment, server_python
from lapis.client.server_environment import Plan, ensure, plan
from lapis.domain import settings
from lapis.errors import Unavailable, UserErrorException
from lapis.machine import own_sources
from lapis.machine.commands import Tell


class Maker:
    """Makes an environment that is a link to this interpreter, and counts."""

    def __init__(self) -> None:
        self.made: list[Plan] = []
        self.may_end = threading.Event()
        self.may_end.set()
        self.begun = threading.Event()

    def __call__(self, wanted: Plan, tell: Tell, lock: int) -> None:
        self.made.append(wanted)
        self.begun.set()
        assert self.may_end.wait(30)
        os.makedirs(os.path.dirname(wanted.python))
        os.symlink(sys.executable, wanted.python)


@pytest.fixture
def maker() -> Maker:
    return Maker()


def test_it_is_made_once(tmp_path: Path, maker: Maker) -> None:
    wanted = plan(str(tmp_path))
    told: list[str] = []
    assert ensure(wanted, told.append, maker) == ensure(wanted, told.append, maker) == wanted.python
    assert maker.made == [wanted]


def test_of_two_at_once_one_makes_it_and_the_other_says_that_it_waits(tmp_path: Path, maker: Maker) -> None:
    wanted, told, found = plan(str(tmp_path)), [], []
    waits = threading.Event()

    def tell(line: str) -> None:
        told.append(line)
        waits.set()

    maker.may_end.clear()
    first = threading.Thread(target=lambda: found.append(ensure(wanted, tell, maker)))
    first.start()
    assert maker.begun.wait(30)
    second = threading.Thread(target=lambda: found.append(ensure(wanted, tell, maker)))
    second.start()
    assert waits.wait(30)
    maker.may_end.set()
    first.join(30)
    second.join(30)
    assert found == [wanted.python] * 2 and len(maker.made) == 1
    assert told == ["another process is making the server's environment; waiting for it ..."]


def test_one_that_was_left_half_made_is_made_anew(tmp_path: Path, maker: Maker) -> None:
    wanted = plan(str(tmp_path))

    def broken(wanted: Plan, tell: Tell, lock: int) -> None:
        maker(wanted, tell, lock)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure(wanted, print, broken)
    assert not wanted.ready
    ensure(wanted, print, maker)
    assert wanted.ready and len(maker.made) == 2


def test_one_whose_python_was_removed_is_made_anew(tmp_path: Path, maker: Maker) -> None:
    wanted = plan(str(tmp_path))
    ensure(wanted, print, maker)
    os.remove(wanted.python)
    os.symlink(tmp_path / "removed" / "python", wanted.python)
    ensure(wanted, print, maker)
    assert wanted.ready and len(maker.made) == 2


def test_an_extra_once_asked_for_stays(tmp_path: Path, maker: Maker) -> None:
    plain = plan(str(tmp_path))
    ensure(plan(str(tmp_path), ["s3"]), print, maker)
    again = plan(str(tmp_path))
    assert again.extras == ("s3",) and again.ready and "s3fs" in again.requirements
    assert again.folder != plain.folder


def test_an_extra_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="no extra named 's4'. Known: azure, .*s3"):
        plan(str(tmp_path), ["s4"])


def test_a_folder_of_wheels_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match="no folder '/no/such'"):
        plan(str(tmp_path), wheels="/no/such")


def test_without_a_network_the_error_says_how_to_prepare_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    wanted = plan(str(tmp_path / "home"))
    with pytest.raises(Unavailable) as refused:
        ensure(wanted, print)
    assert "lapis prepare-server --find-links WHEELS" in str(refused.value)
    assert "pip download" in str(refused.value) and not wanted.ready


def test_lapis_python_is_taken_at_its_word(tmp_path: Path) -> None:
    given = settings.load({"LAPIS_HOME": str(tmp_path), "LAPIS_PYTHON": "/mine/python"})
    assert server_python.chosen(given) == "/mine/python"


def test_this_python_is_taken_if_it_has_what_the_server_needs(tmp_path: Path) -> None:
    assert server_python.chosen(settings.load({"LAPIS_HOME": str(tmp_path)})) == sys.executable


def test_nothing_of_the_client_is_on_the_servers_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "of-the-client"))
    variables = server_python.environment(settings.load({"LAPIS_HOME": str(tmp_path)}))
    (sources,) = variables["PYTHONPATH"].split(os.pathsep)
    assert sorted(os.listdir(sources)) == ["azureml", "lapis"]
    code = "import lapis, os; print(os.path.realpath(lapis.__path__[0]))"
    found = subprocess.check_output([sys.executable, "-S", "-c", code], env=variables, text=True)
    assert found.strip() == own_sources.real_folders()[1]


def test_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    server_environment.say("making it ...")
    assert capsys.readouterr() == ("", "Lapis: making it ...\n")
