"""What a cache keeps for all runs, laid out for one of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lapis.files import shared_files
from lapis.machine import cloning


def test_who_writes_to_what_was_laid_does_not_change_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"kept")
    shared_files.lay(str(tmp_path / "kept"), str(tmp_path / "laid"))
    assert os.stat(tmp_path / "laid").st_mode & 0o222 == 0
    os.chmod(tmp_path / "laid", 0o600)
    with open(tmp_path / "laid", "ab") as file:
        file.write(b" and more")
    assert (tmp_path / "kept").read_bytes() == b"kept"


def test_what_is_large_takes_no_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_files, "COPIED_UP_TO", 3)
    (tmp_path / "kept").write_bytes(b"kept")
    shared_files.lay(str(tmp_path / "kept"), str(tmp_path / "laid"))
    assert (tmp_path / "laid").read_bytes() == b"kept"
    assert cloning.is_possible(str(tmp_path)) or os.path.samefile(tmp_path / "kept", tmp_path / "laid")
