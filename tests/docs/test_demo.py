"""`make demo` tells the whole story, and what it tells people to try next works. Heavy: TensorFlow is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kept import kept_home

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.mark.full
@pytest.mark.xdist_group("frameworks")
def test_the_demo_trains_deploys_and_shows_commands_that_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with kept_home() as home:
        monkeypatch.setenv("LAPIS_HOME", str(home.path))
        _check_demo(tmp_path)


def _check_demo(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, DEMO], cwd=tmp_path, capture_output=True, text=True, timeout=500)
    told = done.stdout
    assert done.returncode == 0, told + done.stderr
    assert re.search(r"^Dataset 'digits', version \d+: /README.md, /digits.npz$", told, re.M)
    assert "Status: Completed" in told
    assert len(re.findall(r"^ +\d  \d\.\d{3} +0\.\d{3}  #+$", told, re.M)) == 4, "a row for each epoch"
    assert "The largest difference to the original is" in told
    right = re.search(r"^1000 digits, \d+ MB of JSON, are answered in .* s: (\d+) are right\.$", told, re.M)
    assert right and int(right.group(1)) > 940
    assert "reads 7, 100% sure" in told and re.search("[▀▄█]{4}", told)
    assert "#key=" not in told

    commands = re.findall(r"^    (\S*lapis (\w+).*|curl .*)$", told, re.M)
    assert {noun for _, noun in commands} == {"open", "run", "model", "service", "stop", ""}
    for command, noun in sorted(commands, key=lambda each: "delete" in each[0]):
        if noun != "stop":
            tried = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=300)
            assert tried.returncode == 0, f"{command}\n{tried.stdout}{tried.stderr}"
    assert (tmp_path / "digits.onnx").stat().st_size > 100_000


def test_a_home_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {"LAPIS_HOME": str(tmp_path / "file" / "home"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, DEMO], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(
        r"LAPIS_HOME .* cannot be written \(.*\)\. Set LAPIS_HOME to a folder that can be\.\n", done.stderr
    )
