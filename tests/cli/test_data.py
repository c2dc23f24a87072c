"""`lapis dataset` and `lapis datastore`."""

from __future__ import annotations

from pathlib import Path

from lapis.sdk.workspace.workspace import Workspace
from tests.cli.conftest import Lapis


def test_files_go_to_a_datastore_and_come_back(lapis: Lapis, here: Workspace, tmp_path: Path) -> None:
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "a.csv").write_text("day,amount\n1,2\n")
    assert lapis("datastore", "upload", "workspaceblobstore", "sales", "--target", "./sales").status == 0
    said = lapis("datastore", "download", "workspaceblobstore", "--prefix", "sales/", "-o", "back", "--json")
    assert said.json["count"] == 1 and (tmp_path / "back" / "sales" / "a.csv").read_text() == "day,amount\n1,2\n"
    gone = lapis("datastore", "upload", "workspaceblobstore", "nothing")
    assert gone.status == 1 and "There is no file or folder 'nothing'" in gone.err


def test_datastores_are_listed_and_shown(lapis: Lapis, here: Workspace) -> None:
    listed = {each["name"]: each for each in lapis("datastore", "list", "--json").json["datastores"]}
    assert listed["workspaceblobstore"]["default"] and not listed["workspacefilestore"]["default"]
    assert "workspaceblobstore" in lapis("datastore", "list").out
    assert lapis("datastore", "show", "workspacefilestore").out.startswith("Datastore  workspacefilestore\n")
    assert lapis("datastore", "show", "nowhere").status == 1


def test_datasets_are_registered_listed_and_shown(lapis: Lapis, here: Workspace, tmp_path: Path) -> None:
    assert "No dataset is registered yet." in lapis("dataset", "list").err
    (tmp_path / "a.csv").write_text("day,amount\n1,2\n")
    lapis("datastore", "upload", "workspaceblobstore", "a.csv")
    assert lapis("dataset", "register", "sales", "workspaceblobstore:a.csv", "--table").out == (
        "Registered dataset sales:1.\n"
    )
    again = lapis("dataset", "register", "sales", str(tmp_path / "a.csv"), "--description", "files", "--json").json
    assert (again["version"], again["type"]) == (2, "FileDataset")
    assert [(each["name"], each["version"]) for each in lapis("dataset", "list", "--json").json["datasets"]] == [
        ("sales", 2)
    ]
    assert lapis("dataset", "show", "sales:1", "--json").json["type"] == "TabularDataset"
    assert "Description  files" in lapis("dataset", "show", "sales").out
    unknown = lapis("dataset", "show", "costs")
    assert unknown.status == 1 and "Known: sales" in unknown.err
