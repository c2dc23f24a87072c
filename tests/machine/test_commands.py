"""Commands: told as they come, ended with all they started, and their words in ours."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lapis.environments import explain, progress, uv
from lapis.errors import StorageFull, Unavailable, UserErrorException
from lapis.machine.commands import Stopped, run
from lapis.machine.processes import started


def test_lines_are_told_while_the_command_still_runs(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    code = f"""
import os, sys, time
print("first", file=sys.stderr, flush=True)
while not os.path.exists({str(gate)!r}):
    time.sleep(0.01)
print("output")
print("last", file=sys.stderr, end="")
"""
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        gate.touch()  # it goes on only if this line came while it waited

    said = run([sys.executable, "-c", code], os.environ, str(tmp_path), tell)
    assert told == ["first", "last"] and said.output == "output\n" and said.ok


def test_a_canceled_command_is_ended_with_what_it_started(tmp_path: Path) -> None:
    code = "import subprocess, sys; p = subprocess.Popen(['sleep', '60']); print(p.pid, file=sys.stderr); p.wait()"
    told: list[str] = []
    with pytest.raises(Stopped):
        run([sys.executable, "-c", code], os.environ, str(tmp_path), told.append, lambda: bool(told))
    assert started(int(told[0])) is None


def test_an_exception_of_the_listener_ends_it_too(tmp_path: Path) -> None:
    pids: list[int] = []

    def tell(line: str) -> None:
        pids.append(int(line))
        raise BrokenPipeError

    code = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(60)"
    with pytest.raises(BrokenPipeError):
        run([sys.executable, "-c", code], os.environ, str(tmp_path), tell)
    assert started(pids[0]) is None


def test_no_uv_anywhere_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserErrorException, match="pip install uv"):
        uv.find()


@pytest.mark.parametrize(
    "line, told",
    [
        ("Downloading scipy (33.7MiB)", "Downloading scipy (33.7 MiB)"),
        (" Downloaded scipy", "Downloaded scipy"),
        ("Prepared 7 packages in 887ms", "Downloaded and unpacked 7 packages in 0.9 s"),
        ("Installed 1 package in 2m 05s", "Linked 1 package in 125.0 s"),
        ("   Building wrapt==1.11.1", "Building wrapt==1.11.1 from its source"),
        ("Resolved 7 packages in 164ms", ""),
        (" + numpy==2.4.6", ""),
    ],
)
def test_lines_of_uv_become_lines_for_users(line: str, told: str) -> None:
    assert progress.translated(line.strip()) == told


def test_a_download_is_known_with_its_size() -> None:
    assert progress.download("Downloading scipy (33.5 MiB)") == ("scipy", int(33.5 * 1024**2))
    assert progress.download("Downloaded scipy") == ("", 0)


OLD_STYLE = """
  × No solution found when resolving dependencies:
  ╰─▶ Because pandas==1.5.0 depends on numpy>=1.20.3 and you require
      numpy==1.16.0, we can conclude that your requirements and pandas==1.5.0
      are incompatible.
"""
NEW_STYLE = """error: No solution found when resolving dependencies
  cause: Because pandas==1.5.0 depends on numpy>=1.20.3 and you require numpy==1.16.0, we can conclude that your
         requirements and pandas==1.5.0 are incompatible.
"""


@pytest.mark.parametrize("said", [OLD_STYLE, NEW_STYLE])
def test_a_conflict_reads_the_same_however_uv_draws_it(said: str) -> None:
    error = explain.error(said, "3.8.18", "resolving the packages", "/none")
    assert isinstance(error, UserErrorException)
    assert "These packages do not fit together on Python 3.8.18: Because pandas==1.5.0 depends on" in error.message
    assert "you require numpy==1.16.0, we can conclude" in error.message


@pytest.mark.parametrize(
    "said, kind, words",
    [
        ("error: failed to write\n  cause: No space left on device (os error 28)", StorageFull, "disk is full"),
        (
            "error: Failed to fetch: `https://nowhere.invalid/simple/six/`\n  cause: dns error",
            Unavailable,
            "https://nowhere.invalid cannot be reached (dns error)",
        ),
        (
            "error: Failed to fetch: `https://user:secret@a.invalid/simple/six/`\n  cause: dns error",
            Unavailable,
            "The package index https://a.invalid cannot be reached",
        ),
        (
            "error: Failed to build `demjson==2.2.4`\n  cause: The build backend returned an error\n"
            "         error in demjson setup command: use_2to3 is invalid.\n  hint: Build failures are sad.",
            UserErrorException,
            "demjson==2.2.4 has no ready-made wheel for Python 3.8.18",
        ),
        ("error: something new", UserErrorException, "uv says: something new"),
    ],
)
def test_each_kind_of_trouble_has_its_error(said: str, kind: type, words: str) -> None:
    error = explain.error(said, "3.8.18", "installing the packages", "/none")
    assert isinstance(error, kind) and words in getattr(error, "message", "")
