"""A token goes to the address it was made for, and to whoever else asks for it: never."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Workspace
from azureml.exceptions import AuthenticationException
from lapis.client import local_server, logins
from lapis.client.http_client import Client, Endpoint, JobEndpoint
from lapis.domain import settings as settings_module
from lapis.errors import ServiceException, Unavailable
from lapis.machine import processes
from lapis.testing import Home
from tests.client.test_http_client import serving

CONFIG = {"subscription_id": "local", "resource_group": "local", "workspace_name": "default"}


class Stranger(BaseHTTPRequestHandler):
    """Writes down what it is sent. `elsewhere` is where it sends whoever asks."""

    protocol_version = "HTTP/1.1"
    heard: list[str] = []
    elsewhere = ""

    def do_GET(self) -> None:  # noqa: N802
        self.heard.append(self.headers.get("Authorization", ""))
        self.send_response(307 if self.elsewhere else 200)
        self.send_header("Location", self.elsewhere)
        self.send_header("Content-Length", "17")
        self.end_headers()
        self.wfile.write(b'{"workspaces":[]}')

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[str]:
    Stranger.heard, Stranger.elsewhere = [], ""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Stranger)) as url:
        yield url


@pytest.fixture
def cloned(stranger: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of somebody else's, whose config.json names a server of theirs. Ours has run before."""
    (home.path / "token").write_text("canary-of-the-local-server")
    (tmp_path / ".azureml").mkdir()
    (tmp_path / ".azureml" / "config.json").write_text(json.dumps({**CONFIG, "lapis_server": stranger}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("variables", [{}, {"LAPIS_TOKEN": "canary"}, {"LAPIS_SERVER": "http://10.0.0.5:1"}])
def test_a_cloned_repository_does_not_get_the_token(
    cloned: Path, stranger: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_TOKEN", "canary-of-another")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AuthenticationException, match=f"{stranger}.*`lapis login {stranger}`"):
        Workspace.from_config()
    assert Stranger.heard == []


@pytest.mark.parametrize("command", [["run", "list"], ["status"], ["workspace", "list"], ["run", "list", "-w", "x"]])
def test_nor_by_any_command(cloned: Path, command: list[str], lapis_status: Any) -> None:
    status, said = lapis_status(*command, LAPIS_TOKEN="canary-of-another", LAPIS_SERVER="http://10.0.0.5:1")
    assert status == 1 and "lapis login" in said
    assert Stranger.heard == []


@pytest.fixture
def lapis_status(cloned: Path) -> Any:
    def run(*command: str, **variables: str) -> tuple[int, str]:
        words = [sys.executable, "-m", "lapis.cli", *command]
        done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    return run


def test_who_logged_in_sends_that_token_there_and_nowhere_else(cloned: Path, stranger: str, home: Home) -> None:
    logins.keep(home.settings, stranger.upper() + "/", "given-by-the-stranger")
    with pytest.raises(Exception, match="No workspace named"):
        Workspace.from_config()
    assert Stranger.heard and set(Stranger.heard) == {"Bearer given-by-the-stranger"}
    assert logins.token_for(home.settings, "http://127.0.0.1:1") is None
    assert stat.S_IMODE(os.stat(home.path / "logins.json").st_mode) == 0o600
    assert logins.forget(home.settings, stranger) and not logins.forget(home.settings, stranger)


def test_the_variable_is_for_the_address_that_the_other_variable_names(stranger: str, tmp_path: Path) -> None:
    both = settings_module.load({"LAPIS_HOME": str(tmp_path), "LAPIS_SERVER": stranger + "/", "LAPIS_TOKEN": "t"})
    assert local_server.token_for(both, stranger) == "t"
    with pytest.raises(AuthenticationException, match="http://127.0.0.1:1"):
        local_server.token_for(both, "http://127.0.0.1:1")


@pytest.mark.parametrize(
    "one, same",
    [
        ("http://Host:80/", "http://host"),
        ("https://host", "https://HOST:443"),
        ("http://[::1]", "http://[::1]:80"),
    ],
)
def test_an_address_is_the_same_however_it_is_written(one: str, same: str) -> None:
    assert logins.origin(one) == logins.origin(same)


@pytest.mark.parametrize("other", ["https://host:80", "http://host:81", "http://host.evil:80", "http://[::1]:80"])
def test_another_scheme_host_or_port_is_another_server(other: str) -> None:
    assert logins.origin(other) != logins.origin("http://host:80")


def test_an_answer_that_leads_elsewhere_is_an_error_and_not_followed(stranger: str) -> None:
    Stranger.elsewhere = stranger + "/caught"
    with pytest.raises(ServiceException, match="status 307"):
        Client(Endpoint(stranger, "t")).call("GET", "/workspaces")
    assert len(Stranger.heard) == 1


# -- somebody else has the port of a server that is gone


def left_behind(home: Path, url: str) -> str:
    """What a killed server leaves: its pid is another process' by now, and its port too."""
    about = {"url": url, "pid": os.getpid(), "version": "0", "started": "7", "seen_from": processes.seen_from()}
    (home / "server.json").write_text(json.dumps(about))
    return str(home / "server.json")


def test_whoever_has_the_port_of_a_dead_server_does_not_get_its_token(
    stranger: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home.path / "token").write_text("canary-of-the-local-server" * 2)
    left_behind(home.path, stranger)
    assert local_server.running(home.settings) is None
    assert Workspace.from_config().name == "default"  # by a server that was started
    assert Stranger.heard == []
    client = local_server.client()
    home.kill_server()
    left_behind(home.path, stranger)
    assert client.call("GET", "/workspaces")["workspaces"] and Stranger.heard == []


def test_nor_does_a_job_send_it_the_runs_token(stranger: str, tmp_path: Path) -> None:
    job = JobEndpoint(stranger, "token-of-a-run", left_behind(tmp_path, stranger))
    with pytest.raises(Unavailable, match="has left"):
        Client(job).call("GET", "/workspaces", patience=0.1)
    assert Stranger.heard == []
    about = json.loads((tmp_path / "server.json").read_text())
    (tmp_path / "server.json").write_text(json.dumps({**about, "seen_from": "another machine"}))
    assert Client(job).call("GET", "/workspaces") == {"workspaces": []}, "from elsewhere nobody can tell"
