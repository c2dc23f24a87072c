"""`lapis gc`, `backup`, `restore`, `doctor`, from the command line."""

from __future__ import annotations

from lapis.testing import Home
from tests.cli.conftest import Lapis


def test_gc_says_what_went_for_people_and_for_programs(lapis: Lapis, on_shared_server: Home) -> None:
    said = lapis("gc", "--dry-run", "--json").json
    assert said["dry_run"] is True and said["freed"] == 0
    assert {"what", "count", "bytes", "freed"} == set(said["collected"][0])
    assert lapis("gc").status == 0
