"""Fixtures that every test may use: a real local server in a home of its own, and a fresh workspace on it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lapis.client import local_server
from lapis.domain import settings as settings_module
from lapis.machine import mounts
from lapis.machine.processes import started
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from tests.ray_cluster import _ray_cluster, ray_cluster

__all__ = ["_ray_cluster", "ray_cluster"]  # fixtures: one cluster for all tests that want it

for _name in [name for name in os.environ if name.startswith(("LAPIS_", "AZUREML_"))]:
    del os.environ[_name]  # whatever the developer's own shell says does not count here


class Home:
    """A LAPIS_HOME of its own, whose server and agents end with the test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def settings(self) -> settings_module.Settings:
        return settings_module.load({"LAPIS_HOME": str(self.path)})

    @property
    def server_pid(self) -> int | None:
        about = local_server.running(self.settings)
        return None if about is None else int(about["pid"])

    def start(self) -> None:
        local_server.ensure_server(self.settings)

    def kill_server(self) -> None:
        pid = self.server_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while started(pid) is not None:
            pass

    def end(self, keep_files: bool = False) -> None:
        pid = self.server_pid
        if pid is not None:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in _processes_mentioning(str(self.path)):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        mounts.detach_below(str(self.path))
        if not keep_files:
            shutil.rmtree(self.path, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_home() -> Iterator[Home]:
    """One server for all tests that do not hurt it."""
    home = Home(Path(tempfile.mkdtemp(prefix="lapis-shared-")))
    yield home
    home.end()


@pytest.fixture
def on_shared_server(shared_home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("LAPIS_HOME", str(shared_home.path))
    return shared_home


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home, and so a server, for this test alone: it may be killed."""
    alone = Home(Path(tempfile.mkdtemp(prefix="lapis-home-")))
    monkeypatch.setenv("LAPIS_HOME", str(alone.path))
    yield alone
    alone.end()


@pytest.fixture
def workspace(on_shared_server: Home, request: pytest.FixtureRequest, tmp_path: Path,
              monkeypatch: pytest.MonkeyPatch) -> Workspace:  # fmt: skip
    """A workspace nobody else uses, with the working folder in a place of its own."""
    monkeypatch.chdir(tmp_path)
    name = re.sub(r"\W+", "-", request.node.name)[:20].strip("-") + "-" + os.urandom(4).hex()
    return Workspace.create(name, show_output=False)


@pytest.fixture
def experiment(workspace: Workspace) -> Experiment:
    return Experiment(workspace, "trial")


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """`script('print(1)')` writes train.py into a folder of its own and gives that folder."""

    def write(code: str, name: str = "train.py") -> str:
        folder = tmp_path / f"source-{os.urandom(3).hex()}"
        folder.mkdir()
        (folder / name).write_text(code)
        return str(folder)

    return write


def _processes_mentioning(text: str) -> list[int]:
    """Agents and scripts of a home: their command line or their environment names it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in command or f"LAPIS_HOME={text}".encode() in environment:
            found.append(int(entry.name))
    return found
