"""`lapis` where nothing but Lapis is installed: it becomes the server's interpreter, and submits in its own name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lapis.client import submitting_python
from lapis.machine import own_sources
from lapis.version import VERSION


def lapis(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """-S: without site-packages, as an interpreter that only has the client."""
    code = "import sys; from lapis.client.command_line import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-S", "-c", code, *arguments],
        capture_output=True, text=True, timeout=60, cwd=home,
        env={**os.environ, "LAPIS_HOME": str(home), "PYTHONPATH": own_sources.folder(), **variables},
    )  # fmt: skip


def test_a_command_runs_in_the_servers_interpreter(tmp_path: Path) -> None:
    said = lapis(tmp_path, "run", "--help", LAPIS_PYTHON=sys.executable)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("Usage: lapis run ")


def test_what_is_wrong_with_it_is_one_line(tmp_path: Path) -> None:
    said = lapis(tmp_path, "run", "list", LAPIS_PYTHON=str(tmp_path / "python"))
    assert (said.returncode, said.stderr) == (1, f"Error: {tmp_path / 'python'}: No such file or directory.\n")


def test_the_version_is_told_without_an_environment(tmp_path: Path) -> None:
    said = lapis(tmp_path, "--version")
    assert (said.stdout, said.returncode, list(tmp_path.iterdir())) == (f"lapis {VERSION}\n", 0, [])


def test_an_interpreter_of_the_users_own_is_not_given_extras(tmp_path: Path) -> None:
    said = lapis(tmp_path, "prepare-server", "--extra", "s3", LAPIS_PYTHON="/mine/python")
    assert said.returncode == 1 and "pip install 'lapis-ml[server,s3]'" in said.stderr


def test_it_submits_in_the_name_of_the_python_that_it_speaks_for() -> None:
    code = (
        "from lapis.client import submitting_python as s; import sys; s.speak_for(sys.argv[1]);"
        "from lapis.sdk.environments.conda_dependencies import PYTHON_DEFAULT_VERSION;"
        "print(s.submitting_python().path, PYTHON_DEFAULT_VERSION)"
    )
    mine = '{"path": "/mine/python", "version": "3.8.18", "search_path": []}'
    environment = {**os.environ, "PYTHONPATH": own_sources.folder()}
    said = subprocess.check_output([sys.executable, "-S", "-c", code, mine], env=environment, text=True)
    assert said.strip() == "/mine/python 3.8"
    assert submitting_python.submitting_python().path == sys.executable
