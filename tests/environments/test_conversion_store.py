"""What conversions leave takes no more room than it may."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lapis.environments import conversion


def test_what_was_not_used_for_longest_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_KEEP_BYTES", 250)
    root = str(tmp_path / "environments")
    folders = [Path(conversion.store(root), letter * 32) for letter in "abc"]
    for age, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(b"x" * 100)
        os.utime(folder, (age, age))
    (Path(conversion.store(root)) / "making-now").mkdir()
    in_use = conversion._copied(str(folders[0] / "model.onnx"), str(tmp_path))
    conversion._make_room(root, str(folders[2]))
    assert [folder.exists() for folder in folders] == [False, True, True]
    assert (Path(conversion.store(root)) / "making-now").exists()
    assert Path(in_use).read_bytes() == b"x" * 100, "a service keeps what it serves"


def test_the_same_model_has_the_same_name_wherever_it_lies(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place / "variables").mkdir(parents=True)
        (tmp_path / place / "saved_model.pb").write_bytes(b"graph")
        (tmp_path / place / "variables" / "data").write_bytes(b"weights")
    assert conversion._hash(str(tmp_path / "here")) == conversion._hash(str(tmp_path / "there"))
    (tmp_path / "there" / "variables" / "data").write_bytes(b"weightz")
    assert conversion._hash(str(tmp_path / "here")) != conversion._hash(str(tmp_path / "there"))
