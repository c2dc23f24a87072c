"""The clock for durations goes on evenly, from one server to the next."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lapis.machine import clock, json_files


def test_a_clock_that_is_asked_for_again_goes_on_though_the_time_of_day_jumped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "clock.json")
    first = clock.steady(path)
    assert abs(first() - time.time()) < 5
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 24 * 3600)
    assert abs(clock.steady(path)() - first()) < 5


def test_after_a_boot_its_hands_are_set_anew(tmp_path: Path) -> None:
    path = tmp_path / "clock.json"
    json_files.write(str(path), {"boot": "another", "ahead": -1e6})
    assert abs(clock.steady(str(path))() - time.time()) < 5
    path.write_text("torn")
    assert abs(clock.steady(str(path))() - time.time()) < 5
