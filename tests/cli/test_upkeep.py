"""`lapis gc`, `backup`, `restore`, `doctor`, from the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lapis.testing import Home
from tests.cli.conftest import Lapis


def test_gc_says_what_went_for_people_and_for_programs(lapis: Lapis, on_shared_server: Home) -> None:
    said = lapis("gc", "--dry-run", "--json").json
    assert said["dry_run"] is True and said["freed"] == 0
    assert {"what", "count", "bytes", "freed"} == set(said["collected"][0])
    assert lapis("gc").status == 0


def test_a_home_is_backed_up_restored_and_looked_over(
    lapis: Lapis, on_shared_server: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_shared_server.start()
    said = lapis("backup", str(tmp_path / "b.tar"), "--json").json
    assert said["files"] >= 2 and said["missing"] == []
    again = lapis("restore", str(tmp_path / "b.tar"))
    assert again.status == 1 and "holds runs already" in again.err
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path / "fresh"))
    assert lapis("restore", str(tmp_path / "b.tar"), "--json").json["files"] == said["files"]
    looked = lapis("doctor", "--deep", "--fix")
    assert looked.status == 0 and "ok     database" in looked.out
    os.chmod(tmp_path / "fresh" / "token", 0o644)
    assert lapis("doctor", "--json").json["wrong"] == 1
    assert lapis("doctor").status == 1
    assert lapis("doctor", "--fix").status == 0


def test_files_of_another_machine_are_not_ours_to_back_up(lapis: Lapis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPIS_SERVER", "http://127.0.0.1:1")
    assert "on the machine of that server" in lapis("backup", "x").err
