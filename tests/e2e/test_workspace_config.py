"""How from_config() finds its file, what it says when it cannot use it, and what write_config() leaves behind."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Workspace
from azureml.exceptions import AuthenticationException, ServiceException, UserErrorException
from lapis.client import local_server, logins
from lapis.sdk.workspace.workspace_config import find, read
from lapis.testing import Home

CANDIDATES = [
    ".azureml/config.json", ".azureml/project.json", "aml_config/config.json", "aml_config/project.json",
    "config.json", "project.json",
]  # fmt: skip


def write(path: Path, **config: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def named(workspace: Workspace) -> dict[str, str]:
    """What a config.json says that names the workspace."""
    return {
        "subscription_id": workspace.subscription_id,
        "resource_group": workspace.resource_group,
        "workspace_name": workspace.name,
    }


# -- found


@pytest.mark.parametrize("first, second", list(itertools.combinations(CANDIDATES, 2)))
def test_the_earlier_candidate_wins_even_from_far_above(tmp_path: Path, first: str, second: str) -> None:
    start = tmp_path / "a" / "b" / "c"
    start.mkdir(parents=True)
    write(start / second)
    assert find(start) == str(start / second)
    write(tmp_path / first)
    assert find(start) == str(tmp_path / first)


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_of_the_same_candidate_the_nearest_wins_and_none_below_counts(tmp_path: Path, candidate: str) -> None:
    start = tmp_path / "a" / "b"
    write(start / "below" / candidate)
    assert find(start) is None
    far, near = write(tmp_path / candidate), write(tmp_path / "a" / candidate)
    assert find(start) == str(near)
    near.unlink()
    assert find(start) == str(far)


def test_the_search_begins_in_the_working_folder(
    workspace: Workspace, named: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".azureml" / "config.json", **named)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert Workspace.from_config() == workspace


def test_a_file_or_a_folder_may_be_named(workspace: Workspace, named: dict[str, str], tmp_path: Path) -> None:
    file = write(tmp_path / "elsewhere" / "my settings.json", **named)
    assert Workspace.from_config(path=str(file)) == workspace
    assert Workspace.from_config(file) == workspace
    write(tmp_path / "project" / ".azureml" / "config.json", **named)
    assert Workspace.from_config(path=tmp_path / "project") == workspace
    assert Workspace.from_config(path=tmp_path / "elsewhere", _file_name="my settings.json") == workspace


def test_a_byte_order_mark_does_no_harm(workspace: Workspace, named: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(named), encoding="utf-8-sig")
    assert Workspace.from_config() == workspace


def test_the_form_that_names_a_scope_is_read_too(workspace: Workspace, tmp_path: Path) -> None:
    scope = (
        f"/subscriptions/{workspace.subscription_id}/resourceGroups/{workspace.resource_group}"
        f"/providers/Microsoft.MachineLearningServices/workspaces/{workspace.name}"
    )
    write(tmp_path / "config.json", Id=None, Scope=scope)
    assert Workspace.from_config() == workspace


# -- not found, not readable


def test_without_any_file_the_default_workspace_is_used_and_said_in_one_line(
    on_shared_server: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Workspace.from_config().name == "default"
    out, err = capfd.readouterr()
    address = local_server.running(on_shared_server.settings) or {}
    assert out == ""
    assert err == f"Lapis: no config.json found, using workspace 'default' of the server at {address['url']}.\n"


def test_a_path_without_a_configuration_is_an_error(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserErrorException, match="No workspace configuration .*empty.*write_config"):
        Workspace.from_config(path=tmp_path / "empty")
    with pytest.raises(UserErrorException, match="no file or folder .*nowhere"):
        Workspace.from_config(path=tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text, says",
    [
        ("{not json", "is not JSON"),
        ("", "is not JSON"),
        ("[1, 2]", "must hold a JSON object, not a list"),
        ('{"subscription_id": "s", "resource_group": "g"}', "lacks workspace_name"),
        ('{"resource_group": ""}', "lacks subscription_id, resource_group, workspace_name"),
        ('{"subscription_id": 5, "resource_group": "g", "workspace_name": "w"}', "subscription_id .* must be text"),
        ('{"Id": null, "Scope": "/subscriptions/s"}', "Scope .* does not name a workspace"),
        ('{"Scope": 5}', "Scope .* does not name a workspace"),
        ('{"subscription_id": "s", "resource_group": "g", "workspace_name": "w", "lapis_server": "host"}',
         "lapis_server .* must be an address"),
        ('{"subscription_id": "s", "resource_group": "g", "workspace_name": "w", "lapis_server": 5}',
         "lapis_server .* must be an address"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_with_what_is_wrong(workspace: Workspace, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "config.json").write_text(text)
    before = Workspace.list(workspace.subscription_id).keys()
    with pytest.raises(UserErrorException, match=says) as caught:
        Workspace.from_config()
    assert str(tmp_path / "config.json") in caught.value.message
    assert Workspace.list(workspace.subscription_id).keys() == before, "nothing was made"


def test_a_file_that_is_no_text_is_named(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(UserErrorException, match="config.json is not JSON"):
        Workspace.from_config()


def test_a_workspace_name_that_cannot_be_is_told_from_a_file(workspace: Workspace, tmp_path: Path) -> None:
    write(tmp_path / "config.json", subscription_id="s", resource_group="g", workspace_name="no spaces here")
    with pytest.raises(UserErrorException, match="'no spaces here' cannot be used"):
        Workspace.from_config()


def test_a_file_from_azure_gets_its_workspace_here(
    workspace: Workspace, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = f"azure-{tmp_path.name[:10].replace('_', '-')}"
    write(tmp_path / "config.json", subscription_id="0123-abc", resource_group="my-group", workspace_name=name)
    made = Workspace.from_config()
    assert (made.subscription_id, made.resource_group, made.name) == ("0123-abc", "my-group", name)
    assert f"made workspace '{name}'" in capfd.readouterr().err
    assert Workspace.from_config() == made
    assert capfd.readouterr().err == ""


# -- another server


def test_a_server_that_does_not_answer_is_told_with_the_file_that_names_it(
    workspace: Workspace, named: dict[str, str], on_shared_server: Home, tmp_path: Path
) -> None:
    write(tmp_path / "config.json", **named, lapis_server="http://127.0.0.1:9")
    logins.keep(on_shared_server.settings, "http://127.0.0.1:9", "of-that-server")
    began = time.monotonic()
    with pytest.raises(ServiceException, match="http://127.0.0.1:9") as caught:
        Workspace.from_config()
    assert str(tmp_path / "config.json") in caught.value.message
    assert time.monotonic() - began < 15


def test_a_server_in_the_file_is_used_with_a_token(
    workspace: Workspace, named: dict[str, str], home: Home, on_shared_server: Home, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    address = local_server.running(on_shared_server.settings) or {}
    write(tmp_path / "config.json", **named, lapis_server=address["url"])
    monkeypatch.setenv("LAPIS_HOME", str(home.path))  # where no server is, nor a token
    with pytest.raises(AuthenticationException, match=f"{address['url']}.*`lapis login.*LAPIS_TOKEN"):
        Workspace.from_config()
    logins.keep(home.settings, address["url"], "not-the-token-of-that-server-at-all-0123456789")
    with pytest.raises(AuthenticationException, match="token is not this server's"):
        Workspace.from_config()
    logins.keep(home.settings, address["url"], Path(on_shared_server.settings.token_file).read_text().strip())
    found = Workspace.from_config()
    assert found == workspace
    assert home.server_pid is None, "no server of our own was started"
    found.write_config(tmp_path / "again")
    assert read(str(tmp_path / "again" / ".azureml" / "config.json")).server == address["url"]


def test_a_server_in_the_environment_is_used(
    workspace: Workspace, home: Home, on_shared_server: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = local_server.running(on_shared_server.settings) or {}
    monkeypatch.setenv("LAPIS_HOME", str(home.path))
    monkeypatch.setenv("LAPIS_SERVER", address["url"] + "/")
    monkeypatch.setenv("LAPIS_TOKEN", Path(on_shared_server.settings.token_file).read_text().strip())
    assert Workspace.get(workspace.name) == workspace
    assert home.server_pid is None


# -- written


def test_what_is_written_is_found_again(workspace: Workspace, tmp_path: Path, python: Callable[..., str]) -> None:
    workspace.write_config()
    file = tmp_path / ".azureml" / "config.json"
    assert json.loads(file.read_text()) == {
        "subscription_id": workspace.subscription_id,
        "resource_group": workspace.resource_group,
        "workspace_name": workspace.name,
    }
    assert Workspace.from_config() == workspace
    assert python("from azureml.core import Workspace; print(Workspace.from_config().name)") == workspace.name + "\n"
    workspace.write_config(path=tmp_path / "project", file_name="ws.json")
    assert Workspace.from_config(tmp_path / "project" / ".azureml" / "ws.json") == workspace
    workspace.write_config(path=tmp_path / "x" / ".azureml")
    assert Workspace.from_config(tmp_path / "x") == workspace


def test_a_folder_that_cannot_be_written_is_told(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserErrorException, match="file/.azureml.* cannot be written"):
        workspace.write_config(path=tmp_path / "file")
