"""The built wheel in a fresh environment of a user: nothing comes along, nothing is in the way, and all of it works."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from lapis.testing import Home
from tests.sdk.test_import import interpreters
from tests.wheels import built_lapis, make_wheel

STORY = """
import json, os, sys
from azureml.core import Experiment, ScriptRunConfig, Workspace
os.makedirs("code")
with open("code/train.py", "w") as file:
    file.write("import sys; from azureml.core import Run; Run.get_context().log('m', 1); print(sys.executable)")
run = Experiment(Workspace.from_config(), "e").submit(ScriptRunConfig("code", "train.py"))
run.wait_for_completion()
log = run.get_logs()["user_logs/std_log.txt"].strip()
print(json.dumps([run.get_status(), run.get_metrics(), log == sys.executable]))
"""


def test_the_wheel_requires_nothing() -> None:
    with zipfile.ZipFile(built_lapis()) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        required = [line for line in wheel.read(metadata).decode().splitlines() if line.startswith("Requires-Dist:")]
        assert required and [line for line in required if "extra ==" not in line] == []
        assert "lapis/client/server_requirements.txt" in wheel.namelist()


class User:
    """Somebody's Python, with Lapis and the packages that are there already."""

    def __init__(self, folder: Path, python: str, packages: list[Path]) -> None:
        self.folder = folder
        folder.mkdir()
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        self.run("python", "-m", "pip", "install", "--no-index", *map(str, packages), str(built_lapis()))

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Without our own interpreter on the PATH: it has uv beside it."""
        variables = {**os.environ, "PATH": f"{self.folder / 'venv' / 'bin'}:/usr/bin:/bin"}
        variables.setdefault("UV_CACHE_DIR", os.path.expanduser("~/.cache/uv"))
        said = subprocess.run(
            [self.folder / "venv" / "bin" / program, *arguments],
            capture_output=True, text=True, cwd=self.folder, env=variables, timeout=300,
        )  # fmt: skip
        assert said.returncode == 0, said.stdout + said.stderr
        return said


# The oldest client; one that is too old for the server; one that would do, whose packages would not.
@pytest.mark.full
@pytest.mark.parametrize("version", ["3.7", "3.8", "3.12"])
def test_a_client_with_other_packages_in_the_way_gets_a_server_and_a_command_line(
    version: str, home: Home, tmp_path: Path
) -> None:
    python = interpreters().get(version)
    if python is None:
        pytest.skip(f"no Python {version} is here")
    broken = "raise ImportError('a package of the client is on the path of the server')"
    packages = [
        make_wheel(tmp_path / "wheels", "sqlalchemy", "1.4.54", broken),
        make_wheel(tmp_path / "wheels", "typing_extensions", "4.5.0", broken),
    ]
    user = User(tmp_path / "user", python, packages)
    told = user.run("python", "-c", STORY)
    assert json.loads(told.stdout) == ["Completed", {"m": 1}, True]
    assert "Lapis: making the local server's environment" in told.stderr
    assert [run["status"] for run in json.loads(user.run("lapis", "run", "list", "--json").stdout)["runs"]] == [
        "Completed"
    ]
    listed = json.loads(user.run("python", "-m", "pip", "list", "--format", "json").stdout)
    assert {each["name"].lower().replace("_", "-") for each in listed} - {"pip", "setuptools"} == {
        "lapis-ml", "sqlalchemy", "typing-extensions"}  # fmt: skip
    with open(f"/proc/{home.server_pid}/environ") as file:
        assert str(user.folder) not in dict(each.partition("=")[::2] for each in file.read().split("\0"))["PYTHONPATH"]
    submitted = user.run("lapis", "run", "submit", "--follow", "--source", "code", "train.py")
    assert submitted.stdout.strip() == str(user.folder / "venv" / "bin" / "python")
    user.run("lapis", "adopt")
    assert "already satisfied" in user.run("python", "-m", "pip", "install", "azureml-core").stdout
