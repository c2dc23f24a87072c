"""`make demo` shows a run from end to end, and what it tells people to try next works."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import Home

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_shows_a_run_and_commands_that_work(on_shared_server: Home, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, DEMO], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Status: Completed" in done.stdout
    assert len(re.findall(r"^ +\d+  \d\.\d{3} +\d\.\d{3}  #+$", done.stdout, re.M)) == 10, "a row for each epoch"
    assert "  outputs/model.json\n" in done.stdout
    assert re.search(r"^  Running +\d+\.\d\d s  Script started", done.stdout, re.M)
    assert re.search(r"^  http://127\.0\.0\.1:\d+/studio/\S+#key=\w+$", done.stdout, re.M)

    told = re.findall(r"^    (\S*lapis (\w+).*)$", done.stdout, re.M)
    assert {noun for _, noun in told} == {"run", "stop"}
    for command, noun in told:
        if noun == "stop":
            continue  # the server is not ours alone
        quick = command.replace("--follow", "--dry-run")
        tried = subprocess.run(quick, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert tried.returncode == 0, f"{quick}\n{tried.stdout}{tried.stderr}"


def test_a_home_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {"LAPIS_HOME": str(tmp_path / "file" / "home"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, DEMO], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(
        r"LAPIS_HOME .* cannot be written \(.*\)\. Set LAPIS_HOME to a folder that can be\.\n", done.stderr
    )
