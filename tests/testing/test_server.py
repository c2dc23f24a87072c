"""A server for a test is a real one, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from azureml.core import Experiment, ScriptRunConfig, Workspace
from lapis.machine.processes import started
from lapis.testing import running_server
from lapis.testing.server import processes_of


def test_a_server_for_a_block_ends_with_all_that_runs_on_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAPIS_HOME", "/somewhere/else")
    (tmp_path / "train.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    with running_server() as home:
        assert os.environ["LAPIS_HOME"] == str(home.path)
        assert home.address.startswith("http://127.0.0.1:")
        workspace = home.workspace()
        assert Workspace.get(workspace.name).name == workspace.name
        Experiment(workspace, "trial").submit(ScriptRunConfig(str(tmp_path), "train.py"))
        server = home.server_pid
        assert server is not None and server in processes_of(str(home.path))
    assert os.environ["LAPIS_HOME"] == "/somewhere/else"
    assert started(server) is None and processes_of(str(home.path)) == []
    assert not home.path.exists()


def test_two_servers_share_nothing_and_files_stay_in_a_folder_that_was_named(tmp_path: Path) -> None:
    with running_server(tmp_path) as outer:
        here = outer.workspace("here")
        with running_server(tmp_path) as inner:
            assert inner.path != outer.path and inner.address != outer.address
            assert "here" not in Workspace.list(inner.workspace("there").subscription_id)
        assert Workspace.get("here").get_details() == here.get_details()
    assert inner.path.parent == tmp_path and (inner.path / "server.log").exists()


def test_a_server_can_be_had_without_pytest(tmp_path: Path) -> None:
    code = "import sys; from lapis.testing import running_server, until; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
