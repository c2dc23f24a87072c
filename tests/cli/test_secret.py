"""Secrets by the command line: the value comes from where others cannot read it, and is printed nowhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lapis.sdk.workspace.workspace import Workspace
from tests.cli.conftest import Lapis


def test_a_secret_is_set_listed_and_deleted(
    lapis: Lapis, here: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("open sesame\n"))
    assert lapis("secret", "set", "db-password").out == "Secret 'db-password' is kept.\n"
    (tmp_path / "key.txt").write_text("from a file")
    assert lapis("secret", "set", "api-key", "--file", str(tmp_path / "key.txt"), "--json").json["name"] == "api-key"
    vault = here.get_default_keyvault()
    assert vault.get_secrets(["db-password", "api-key"]) == {"db-password": "open sesame", "api-key": "from a file"}
    assert lapis("secret", "list").out == "SECRET\napi-key\ndb-password\n"
    assert lapis("secret", "delete", "api-key").status == 0
    assert lapis("secret", "list", "--json").json == {"secrets": [{"name": "db-password"}]}


def test_what_cannot_be_done_is_one_line(lapis: Lapis, here: Workspace, tmp_path: Path) -> None:
    assert lapis("secret", "set", "no spaces", "--file", "x").err.startswith("Error: A secret's name is")
    assert "cannot be read" in lapis("secret", "set", "fine", "--file", "nowhere").err
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert "binary is not text" in lapis("secret", "set", "fine", "--file", str(tmp_path / "binary")).err
    assert "no secret 'nobody'" in lapis("secret", "delete", "nobody").err
    assert "No secrets in workspace" in lapis("secret", "list").err


def test_the_value_is_no_word_of_the_command(lapis: Lapis, here: Workspace) -> None:
    assert lapis("secret", "set", "db-password", "open sesame").status == 2
