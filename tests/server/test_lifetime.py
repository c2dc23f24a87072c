"""The local server comes by itself, leaves when idle, is replaced by a newer one, and says clearly what it lacks."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from lapis.client import local_server
from lapis.errors import ServiceException, Unavailable, UserErrorException
from lapis.machine.processes import started
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.runs.run import Run
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home, until
from tests.small_disk import SmallDisk, small

__all__ = ["small"]  # the fixture


def test_a_server_without_work_leaves_and_the_next_call_brings_it_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_IDLE_SECONDS", "0.5")
    workspace = Workspace.from_config()
    first = home.server_pid
    until(lambda: home.server_pid is None)
    assert not (home.path / "server.json").exists()
    assert workspace.get_details()["name"] == "default"
    assert home.server_pid not in (None, first)


def test_a_server_with_a_run_does_not_leave(
    home: Home, monkeypatch: pytest.MonkeyPatch, script: Callable[..., str], tmp_path: Path
) -> None:
    monkeypatch.setenv("LAPIS_IDLE_SECONDS", "0.5")
    gate = tmp_path / "gate"
    code = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    run = Experiment(Workspace.from_config(), "e").submit(ScriptRunConfig(script(code), "train.py"))
    until(lambda: run.get_status() == "Running")
    pid = home.server_pid
    time.sleep(1.5)  # three times as long as an idle server would stay
    assert home.server_pid == pid
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"


def test_a_newer_release_replaces_the_server_without_hurting_a_live_run(
    home: Home, script: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    code = (
        "import os, time\nfrom azureml.core import Run\nrun = Run.get_context()\nrun.log('before', 1)\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\nrun.log('after', 2)\nrun.tag('seen', 'both')\n"
    )
    run = Experiment(Workspace.from_config(), "e").submit(ScriptRunConfig(script(code), "train.py"))
    until(lambda: run.get_status() == "Running")
    old = home.server_pid
    monkeypatch.setattr(local_server, "VERSION", "99.0.0")  # we are the newer release
    again = Run.get(Workspace.from_config(), run.id)
    assert home.server_pid not in (None, old)
    gate.touch()
    assert again.wait_for_completion()["status"] == "Completed"
    assert again.get_metrics() == {"before": 1, "after": 2}
    assert again.tags == {"seen": "both"}


def test_an_older_release_uses_the_newer_server_as_it_is(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    Workspace.from_config()
    pid = home.server_pid
    monkeypatch.setattr(local_server, "VERSION", "0.0.1")
    Workspace.from_config()
    assert home.server_pid == pid


def test_a_server_that_was_stopped_leaves_its_runs_alone(
    home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    code = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\nprint('to the end')"
    run = Experiment(Workspace.from_config(), "e").submit(ScriptRunConfig(script(code), "train.py"))
    until(lambda: run.get_status() == "Running")
    about = local_server.running(home.settings)
    assert about is not None and local_server.stop(home.settings, about)
    assert home.server_pid is None
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert "to the end" in run.get_logs()["user_logs/std_log.txt"]


def test_only_one_server_serves_a_home(home: Home) -> None:
    home.start()
    second = subprocess.run([sys.executable, "-m", "lapis.server"], capture_output=True, timeout=30)
    assert second.returncode == 3


def test_a_call_that_is_interrupted_while_its_server_starts_leaves_it_to_the_next_one_in_silence(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(url: str) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        patched.setattr(local_server, "_answers", interrupted)
        with pytest.raises(KeyboardInterrupt):
            local_server.ensure_server(home.settings)
        gc.collect()  # with the exception goes what the call held
    assert [str(each.message) for each in warned] == []
    started_before = home.server_pid
    local_server.ensure_server(home.settings)
    assert started_before is not None and home.server_pid == started_before


def test_a_port_that_is_taken_is_named(home: Home) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = subprocess.run(
            [sys.executable, "-m", "lapis.server", "--port", port], capture_output=True, text=True, timeout=30
        )
    assert refused.returncode == 1
    assert f"Port {port} of 127.0.0.1 cannot be used" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::ffff:0.0.0.0", "0", "8.8.8.8", "localhost.evil.invalid"])
def test_the_server_listens_on_loopback_or_one_private_address_only(home: Home, host: str) -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "lapis.server", "--host", host], capture_output=True, text=True, timeout=30
    )
    assert refused.returncode == 1
    assert f"LAPIS_HOST='{host}' cannot be used: the server listens on loopback" in refused.stderr


def test_a_setting_that_makes_no_sense_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPIS_MAX_RUNS", "many")
    with pytest.raises(UserErrorException, match="LAPIS_MAX_RUNS='many' cannot be used"):
        Workspace.from_config()


def test_a_configured_server_that_does_not_answer_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPIS_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("LAPIS_TOKEN", "x" * 40)
    monkeypatch.setattr("lapis.client.http_client.Endpoint.patience", 0.2)
    with pytest.raises(Unavailable, match="http://127.0.0.1:9 does not answer"):
        Workspace.from_config()
    assert home.server_pid is None, "no other server is started in its place"


def test_an_interpreter_that_cannot_start_a_server_says_what_to_do(home: Home) -> None:
    source = str(Path(local_server.__file__).parents[2])
    variables = {**os.environ, "PYTHONPATH": source, "UV_OFFLINE": "1", "UV_CACHE_DIR": str(home.path / "cache")}
    said = subprocess.run(  # -S: without site-packages, as an interpreter that only has the client
        [sys.executable, "-S", "-c", "from azureml.core import Workspace; Workspace.from_config()"],
        capture_output=True, text=True, timeout=60, env=variables,
    )  # fmt: skip
    assert said.returncode == 1
    assert "environment could not be made" in said.stderr and "lapis prepare-server" in said.stderr


def test_a_full_disk_is_named_and_nothing_is_lost_once_there_is_room(
    small: tuple[Home, SmallDisk], script: Callable[..., str], tmp_path: Path
) -> None:
    _, disk = small
    gate = tmp_path / "gate"
    code = (
        "import os, time\nfrom azureml.core import Run\nrun = Run.get_context()\n"
        f"run.log('m', 1)\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\nrun.log('m', 2)\nprint('done')\n"
    )
    experiment = Experiment(Workspace.from_config(), "e")
    run = experiment.submit(ScriptRunConfig(script(code), "train.py"))
    until(lambda: run.get_status() == "Running" and run.get_metrics() == {"m": 1})
    disk.fill()
    big = tmp_path / "big.bin"
    big.write_bytes(os.urandom(1 << 20))
    with pytest.raises(Exception, match="(?i)disk.* full"):
        run.upload_file("outputs/big.bin", str(big))
    disk.free()
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"m": [1, 2]}
    assert "done" in run.get_logs()["user_logs/std_log.txt"]
    assert "outputs/big.bin" not in run.get_file_names()


def test_a_home_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, small: tuple[Home, SmallDisk]) -> None:
    _, disk = small
    with disk.read_only():
        monkeypatch.setenv("LAPIS_HOME", str(disk.path / "other"))
        with pytest.raises(UserErrorException, match="cannot be written") as refused:
            Workspace.from_config()
        assert "LAPIS_HOME" in str(refused.value)


def test_a_database_that_cannot_be_read_is_named_and_left_alone(home: Home) -> None:
    (home.path / "lapis.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(ServiceException, match="could not start"):
        Workspace.from_config()
    assert (home.path / "lapis.db").read_bytes().startswith(b"this is no database")


def test_what_the_server_says_of_itself_is_gone_when_it_is(home: Home) -> None:
    home.start()
    about = json.loads((home.path / "server.json").read_text())
    assert started(about["pid"]) is not None
    home.kill_server()
    assert local_server.running(home.settings) is None


def test_a_server_whose_home_was_removed_leaves(home: Home) -> None:
    home.start()
    pid = home.server_pid
    assert pid is not None
    shutil.rmtree(home.path)
    until(lambda: started(pid) is None)


def test_a_home_that_was_open_to_others_is_closed(home: Home) -> None:
    (home.path / "token").write_text("t" * 40)
    (home.path / "token").chmod(0o644)
    home.path.chmod(0o755)
    home.start()
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert (home.path / "token").stat().st_mode & 0o777 == 0o600
    assert f"{home.path} was open to other users. It is closed" in (home.path / "server.log").read_text()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_home_of_somebody_else_is_refused(home: Home) -> None:
    os.chown(home.path, 12345, 12345)
    with pytest.raises(Unavailable, match=f"{home.path} belongs to another user .number 12345.*LAPIS_HOME"):
        Workspace.from_config()
    assert not (home.path / "token").exists()
