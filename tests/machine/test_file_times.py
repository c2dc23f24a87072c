"""A file whose times are said to tell of changes tells of them, through memory maps too."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from lapis.client.collected import stamp
from lapis.machine import file_times
from lapis.testing import until
from tests.small_disk import small_disk


def test_a_write_through_a_memory_map_shows_after_the_call(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(8192))
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0] = 1
        if not file_times.tell_from_now_on(str(path)):
            pytest.skip("the file system of the test's folder keeps no such times")
        before = stamp(str(path))

        def seen() -> bool:
            mapped[0] = (mapped[0] + 1) % 256  # the kernel's clock ticks a few hundred times a second
            file_times.tell_from_now_on(str(path))
            return stamp(str(path)) != before

        until(seen, seconds=5)


def test_a_disk_in_memory_is_not_trusted() -> None:
    with small_disk(1) as disk:
        (disk.path / "file").write_text("x")
        assert not file_times.tell_from_now_on(str(disk.path / "file"))


def test_a_file_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    assert not file_times.tell_from_now_on(os.fspath(tmp_path / "gone"))
