"""Where a path lies: what `lapis.machine.paths` says."""

from __future__ import annotations

from pathlib import Path

from lapis.machine.paths import is_within


def test_a_folder_and_what_is_below_it_are_within_it(tmp_path: Path) -> None:
    assert is_within(str(tmp_path), str(tmp_path))
    assert is_within(str(tmp_path / "not" / "there"), f"{tmp_path}/")
    assert not is_within(f"{tmp_path}-beside", str(tmp_path))
    assert not is_within(str(tmp_path / ".."), str(tmp_path))


def test_everything_is_within_the_root() -> None:
    assert is_within("/", "/") and is_within("/usr/bin", "/")


def test_links_are_followed_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "out").symlink_to("/usr")
    assert is_within(str(tmp_path / "link" / "file"), str(tmp_path / "real"))
    assert is_within(str(tmp_path / "real" / "file"), str(tmp_path / "link"))
    assert not is_within(str(tmp_path / "real" / "out"), str(tmp_path / "real"))
