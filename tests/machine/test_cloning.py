"""Copies that nobody else sees, on whatever file system this is."""

from __future__ import annotations

import io
from pathlib import Path

from lapis.machine import cloning


def test_who_writes_to_a_copy_does_not_change_the_original(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"kept")
    cloning.copy(str(tmp_path / "kept"), str(tmp_path / "mine"))
    with open(tmp_path / "mine", "ab") as file:
        file.write(b" and more")
    assert (tmp_path / "kept").read_bytes() == b"kept"
    assert (tmp_path / "mine").read_bytes() == b"kept and more"


def test_what_is_in_memory_is_copied_too(tmp_path: Path) -> None:
    with open(tmp_path / "mine", "wb") as file:
        cloning.copy_open(io.BytesIO(b"content"), file)
    assert (tmp_path / "mine").read_bytes() == b"content"


def test_whether_blocks_can_be_shared_is_found_out_without_a_trace(tmp_path: Path) -> None:
    assert cloning.is_possible(str(tmp_path)) in (True, False)
    assert list(tmp_path.iterdir()) == []
