"""Waiting ends when something is seen, and says what it waited for when nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapis.testing import until, until_written


def test_what_was_seen_is_given_as_soon_as_it_is_true() -> None:
    looks: Iterator[int] = iter([0, 0, 3, 4])
    assert until(lambda: next(looks)) == 3


def test_who_waits_in_vain_is_told_for_what_and_what_was_seen_last() -> None:
    seen: list[int] = []
    with pytest.raises(AssertionError, match=r"Not within 0 s: .*seen\.count\(3\).* The last look gave 0\.\nmore"):
        until(lambda: seen.count(3), lambda: "more", seconds=0.0)


def test_a_file_counts_as_written_when_its_last_line_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    file.write_text("12")
    with pytest.raises(AssertionError, match=f"The file is {file}"):
        until_written(file, seconds=0.0)
    file.write_text("123\n")
    assert until_written(file) == "123"
