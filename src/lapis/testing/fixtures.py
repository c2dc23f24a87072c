"""pytest fixtures around a real server. A conftest.py takes them with `pytest_plugins = ["lapis.testing.fixtures"]`."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing.server import Home


@pytest.fixture(scope="session", autouse=True)
def _open_tmp_path(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Scripts of tests write to `tmp_path`, so that tests can wait for them, however far apart from it they run."""
    os.environ.setdefault("LAPIS_OPEN_FOLDERS", str(tmp_path_factory.getbasetemp()))


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
    """A home, and so a server, for this test alone: it may be killed. The first call of a client starts it."""
    alone = Home(Path(tempfile.mkdtemp(prefix="lapis-home-")))
    monkeypatch.setenv("LAPIS_HOME", str(alone.path))
    yield alone
    alone.end()


@pytest.fixture
def workspace(on_shared_server: Home, request: pytest.FixtureRequest, tmp_path: Path,
              monkeypatch: pytest.MonkeyPatch) -> Workspace:  # fmt: skip
    """A workspace nobody else uses, with the working folder in a place of its own."""
    monkeypatch.chdir(tmp_path)
    test = re.sub(r"\W+", "-", request.node.name)[:20].strip("-")
    return on_shared_server.workspace(f"{test}-{os.urandom(4).hex()}")


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
