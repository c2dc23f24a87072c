"""How tests use the command line: in this process where that is the same, else as a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lapis.cli.__main__ import main
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home

TRAIN = """
import os
from azureml.core import Run

run = Run.get_context()
print("hello from the script")
print("\\x1b[32mgreen\\x1b[0m \\x1b]0;a title\\x07\\x1b[2Jplain")
for loss in (0.5, 0.25):
    run.log("loss", loss)
run.log("broken", float("nan"))
run.log_row("curve", x=1, y=2)
run.tag("colour", "blue")
os.makedirs("outputs", exist_ok=True)
with open("outputs/model.bin", "wb") as file:
    file.write(b"m" * 2_000_000)
"""


@dataclass
class Said:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Lapis = Callable[..., Said]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def lapis(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lapis:
    """`lapis('run', 'list')` gives the exit status, stdout and stderr of that command."""
    monkeypatch.setenv("LAPIS_SERVER", "")  # a command may set it; afterwards it is as it was

    def run(*arguments: str) -> Said:
        capfd.readouterr()
        status = main(arguments)
        return Said(status, *capfd.readouterr())

    return run


@pytest.fixture
def start() -> Iterator[Start]:
    """`start('run', 'logs', '-f', id)` starts that command as a program. None outlives the test, or a minute."""
    begun: list[tuple[subprocess.Popen[str], threading.Timer]] = []

    def go(*arguments: str, **more: Any) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        process = subprocess.Popen([sys.executable, "-m", "lapis.cli", *arguments], text=True, **pipes)
        limit = threading.Timer(60.0, process.kill)
        limit.start()
        begun.append((process, limit))
        return process

    yield go
    for process, limit in begun:
        limit.cancel()
        if process.poll() is None:
            process.terminate()
            process.wait()
        for pipe in filter(None, (process.stdout, process.stderr)):
            pipe.close()


@pytest.fixture
def here(workspace: Workspace, tmp_path: Path) -> Workspace:
    """A workspace that the working folder is configured for."""
    workspace.write_config(str(tmp_path))
    return workspace


@dataclass
class Finished:
    workspace: str
    id: str

    @property
    def where(self) -> list[str]:
        return ["--workspace", self.workspace]


@pytest.fixture(scope="session")
def _finished(shared_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "train.py").write_text(TRAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAPIS_HOME", str(shared_home.path))
        workspace = Workspace.create(f"finished-{os.urandom(4).hex()}", show_output=False)
        workspace.write_config(str(folder))
        command = [sys.executable, "-m", "lapis.cli", "run", "submit", "--json", "--follow"]
        command += ["--experiment", "fashion", "--tag", "team=a", "--name", "First try", "train.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return Finished(workspace.name, json.loads(done.stdout)["id"])


@pytest.fixture
def finished(_finished: Finished, on_shared_server: Home) -> Finished:
    """A completed run with metrics, tags, a log and an output, for tests that only look at it."""
    return _finished
