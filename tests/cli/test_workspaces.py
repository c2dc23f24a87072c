"""init, workspace list, experiment list, and which workspace a command is about."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lapis.client import local_server
from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home
from tests.cli.conftest import Finished, Lapis


@pytest.fixture
def folder(on_shared_server: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / f"my project {os.urandom(4).hex()}"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def test_init_makes_a_workspace_that_from_config_finds(lapis: Lapis, folder: Path) -> None:
    name = f"made-{os.urandom(4).hex()}"
    said = lapis("init", "--name", name)
    assert said.status == 0 and name in said.out
    assert json.loads((folder / ".azureml" / "config.json").read_text())["workspace_name"] == name
    assert Workspace.from_config().name == name
    again = lapis("init", "--json")
    assert again.json["workspace"] == name and again.json["config"] == str(folder / ".azureml" / "config.json")


def test_init_names_the_workspace_after_the_folder(lapis: Lapis, folder: Path) -> None:
    assert lapis("init", "--json").json["workspace"] == folder.name.replace(" ", "-")


def test_init_of_another_folder_gets_a_workspace_that_is_there(
    lapis: Lapis, folder: Path, workspace: Workspace, tmp_path: Path
) -> None:
    assert lapis("init", "--name", workspace.name, "--path", str(folder)).status == 0
    assert Workspace.from_config(str(folder)) == workspace


def test_init_keeps_a_config_that_names_another_workspace(lapis: Lapis, folder: Path, workspace: Workspace) -> None:
    workspace.write_config(str(folder))
    before = (folder / ".azureml" / "config.json").read_text()
    said = lapis("init", "--name", "other", "--path", str(folder), "--json")
    assert said.status == 1 and said.json["error"]["code"] == "Conflict" and workspace.name in said.err
    assert (folder / ".azureml" / "config.json").read_text() == before


@pytest.mark.parametrize(("arguments", "words"), [(["--path", "nowhere"], "no folder"), (["--name", "a b"], "'a b'")])
def test_init_refuses_what_cannot_be(lapis: Lapis, folder: Path, arguments: list[str], words: str) -> None:
    said = lapis("init", *arguments)
    assert said.status == 1 and words in said.err and said.err.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_workspaces_are_listed(lapis: Lapis, here: Workspace) -> None:
    found = lapis("workspace", "list", "--json").json["workspaces"]
    assert {"default", here.name} <= {each["name"] for each in found}
    assert {"name", "id", "subscription_id", "resource_group", "created_at"} <= set(found[0])
    assert here.name in lapis("workspace", "list").out


def test_experiments_are_listed_and_archived_ones_only_on_request(lapis: Lapis, here: Workspace) -> None:
    assert lapis("experiment", "list").err.startswith("No experiments in workspace")
    Experiment(here, "mnist").tag("team", "a")
    Experiment(here, "old").archive()
    assert [each["name"] for each in lapis("experiment", "list", "--json").json["experiments"]] == ["mnist"]
    everything = lapis("experiment", "list", "--all").out
    assert "mnist" in everything and "team=a" in everything and "(archived)" in everything


def test_without_config_the_default_workspace_is_used_and_said_on_stderr(lapis: Lapis, folder: Path) -> None:
    said = lapis("run", "list", "--json")
    assert said.status == 0 and "runs" in said.json
    assert "using workspace 'default'" in said.err and said.err.count("\n") == 1


def test_an_option_chooses_another_workspace(lapis: Lapis, here: Workspace, finished: Finished) -> None:
    assert lapis("run", "list", "--json").json["runs"] == []
    assert [run["id"] for run in lapis("run", "list", "--json", *finished.where).json["runs"]] == [finished.id]


def test_an_unknown_workspace_is_told_with_the_known_ones(lapis: Lapis, here: Workspace) -> None:
    said = lapis("run", "list", "--workspace", "nowhere", "--json")
    assert said.status == 1 and said.json["error"]["code"] == "Workspace"
    assert "No workspace named 'nowhere'" in said.err and here.name in said.err


def test_the_server_that_config_names_counts_for_every_command(
    lapis: Lapis, finished: Finished, home: Home, shared_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here `home` is this user's own, where no server runs; the file points at the shared one."""
    about = local_server.running(shared_home.settings)
    assert about is not None
    config = {"subscription_id": "local", "resource_group": "local", "workspace_name": "default"}
    (tmp_path / "config.json").write_text(json.dumps({**config, "lapis_server": about["url"]}))
    monkeypatch.chdir(tmp_path)
    refused = lapis("status", "--json")
    assert refused.status == 1 and f"not logged in to the server at {about['url']}" in refused.err
    said = lapis("login", about["url"], "--token-file", shared_home.settings.token_file)
    assert said.out == f"Logged in to {about['url']}.\n"
    assert lapis("status", "--json").json["pid"] == about["pid"]
    assert finished.workspace in lapis("workspace", "list").out
    assert lapis("run", "list", *finished.where).out.count(finished.id) == 1
    assert home.server_pid is None
    assert lapis("logout", about["url"], "--json").json["forgotten"] is True
    assert lapis("workspace", "list").status == 1


@pytest.mark.parametrize("address", ["server", "http://", "ftp://here", "http://127.0.0.1:99999", "http://here/path"])
def test_what_is_no_address_of_a_server_is_told(lapis: Lapis, address: str, home: Home, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token")
    said = lapis("login", address, "--token-file", str(tmp_path / "token"))
    assert said.status == 1 and said.err.startswith(f"Error: '{address}' is no address of a server.")


def test_what_is_no_token_is_told_before_it_is_sent(lapis: Lapis, home: Home, tmp_path: Path) -> None:
    for token in ("", "two words", "one\ntwo", "tökn"):
        (tmp_path / "token").write_text(token)
        said = lapis("login", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"))
        assert said.status == 1 and said.err.startswith("Error: That is no token")


def test_a_config_that_cannot_be_read_is_one_line(lapis: Lapis, folder: Path) -> None:
    (folder / "config.json").write_text("{")
    said = lapis("run", "list")
    assert said.status == 1 and "is not JSON" in said.err and "Traceback" not in said.err
