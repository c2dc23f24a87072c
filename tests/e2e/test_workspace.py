"""Workspaces: made, found, listed, described, changed and removed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Run, Workspace
from azureml.exceptions import UserErrorException, WorkspaceException
from lapis.client import local_server
from lapis.testing import Home


@pytest.fixture
def name(on_shared_server: Home) -> str:
    return f"ws-{os.urandom(4).hex()}"


def test_a_workspace_is_made_and_found_in_every_way(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = Workspace.create(
        name,
        subscription_id="sub",
        resource_group="group",
        location="here",
        tags={"team": "blue"},
        friendly_name="Blue",
    )
    assert name in capsys.readouterr().out
    assert (made.name, made.subscription_id, made.resource_group, made.location) == (name, "sub", "group", "here")
    assert made.tags == {"team": "blue"} and made.sku == "basic"
    assert Workspace.get(name) == Workspace.get(name, subscription_id="sub", resource_group="group") == made
    assert Workspace("sub", "group", name) == made
    assert Workspace.list("sub")[name] == [made]
    assert Workspace.list("sub", resource_group="group")[name] == [made]
    assert name not in Workspace.list("sub", resource_group="other") and name not in Workspace.list("other")
    assert hash(made) == hash(Workspace.get(name)) and made != "something else"


def test_making_it_again_needs_exist_ok(name: str) -> None:
    made = Workspace.create(name, show_output=False)
    with pytest.raises(UserErrorException, match=f"'{name}' exists already .*exist_ok=True"):
        Workspace.create(name, show_output=False)
    assert Workspace.create(name, exist_ok=True, show_output=False) == made
    assert len(Workspace.list("local")[name]) == 1


def test_two_groups_may_use_one_name_and_get_asks_which(name: str) -> None:
    one = Workspace.create(name, resource_group="one", show_output=False)
    two = Workspace.create(name, resource_group="two", show_output=False)
    with pytest.raises(WorkspaceException, match="2 workspaces .*local/one, local/two") as caught:
        Workspace.get(name)
    assert caught.value.found_multiple
    assert Workspace.get(name, resource_group="two") == two
    assert sorted(ws.resource_group for ws in Workspace.list("local")[name]) == ["one", "two"]
    assert one != two


def test_a_workspace_that_is_not_there_is_made_on_ones_own_server(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    made = Workspace.get(name=name)
    assert f"Lapis: made workspace '{name}' on the local server." in capfd.readouterr().err
    assert Workspace.get(name) == made and capfd.readouterr().err == ""
    other = Workspace("s", "g", name)
    assert (other.subscription_id, other.resource_group) == ("s", "g") and other != made
    assert Workspace("s", "g", name) == other


def test_on_a_server_of_others_it_is_told_with_those_that_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Workspace.create(name, show_output=False)
    monkeypatch.setenv("LAPIS_SERVER", local_server.client().endpoint.find()[0])
    with pytest.raises(WorkspaceException, match=f"'not-there'.*{name}"):
        Workspace.get("not-there")
    with pytest.raises(WorkspaceException, match="'not-there' in resource group 'g'"):
        Workspace("s", "g", "not-there")
    with pytest.raises(WorkspaceException, match=f"'{name}'"):
        Workspace.get(name, id="another")


@pytest.mark.parametrize("wrong", ["", "x", "has spaces", "-dash", "x" * 34, "ü", "a/b", 5, None])
def test_a_name_that_azure_would_refuse_is_refused(on_shared_server: Home, wrong: Any) -> None:
    before = len(Workspace.list("local"))
    with pytest.raises(UserErrorException, match="name"):
        Workspace.create(wrong)
    assert len(Workspace.list("local")) == before


def test_a_workspace_tells_its_details_and_what_was_changed_in_them(name: str) -> None:
    made = Workspace.create(name, show_output=False)
    details = made.get_details()
    assert details["name"] == name and details["workspaceid"] == made._workspace_id
    assert details["id"].endswith(
        f"/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/{name}"
    )
    assert details["creationTime"].endswith("Z") and details["friendlyName"] == name
    changed = made.update(friendly_name="Nice", description="For trials", tags={"a": 1})
    assert (changed["friendlyName"], changed["description"], changed["tags"]) == ("Nice", "For trials", {"a": "1"})
    assert Workspace.get(name).tags == {"a": "1"}


def test_a_workspace_knows_its_experiments_and_runs(workspace: Workspace) -> None:
    assert workspace.experiments == {}
    with Experiment(workspace, "first").start_logging() as run:
        assert workspace.get_run(run.id) == run
    Experiment(workspace, "second")
    assert list(workspace.experiments) == ["first", "second"]
    assert isinstance(workspace.experiments["first"], Experiment)


def test_what_is_in_one_workspace_is_not_in_another(workspace: Workspace, name: str) -> None:
    other = Workspace.create(name, show_output=False)
    with Experiment(workspace, "same").start_logging(run_id="same") as run:
        run.log("x", 1)
    with pytest.raises(UserErrorException, match="'same'"):
        Run.get(other, "same")
    with Experiment(other, "same").start_logging(run_id="same") as theirs:
        theirs.log("x", 2)
    assert (run.get_metrics(), theirs.get_metrics()) == ({"x": 1}, {"x": 2})
    assert run != theirs


def test_a_deleted_workspace_is_gone_unless_something_lives_in_it(name: str, tmp_path: Path) -> None:
    made = Workspace.create(name, show_output=False)
    run = Experiment(made, "trial").start_logging()
    with pytest.raises(UserErrorException, match=f"'{name}' has 1 runs that have not ended"):
        made.delete()
    run.complete()
    made.delete()
    assert name not in Workspace.list("local")
    again = Workspace.create(name, show_output=False)
    assert again.experiments == {}


def test_setup_writes_the_configuration_of_the_default_workspace(
    on_shared_server: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Workspace.setup().name == "default"
    assert (tmp_path / ".azureml" / "config.json").exists()
    assert Workspace.from_config().name == "default"


def test_what_belongs_to_a_later_release_says_so(workspace: Workspace) -> None:
    for use in (workspace.list_keys, workspace.get_mlflow_tracking_uri):
        with pytest.raises(NotImplementedError, match=r"Workspace\.\w+ is not there yet"):
            use()
