"""The storm in small: what `python -m tests.chaos.storm` does a thousand times, some dozens of times."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapis.testing import Home
from tests.chaos.storm import Storm


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_loses_and_doubles_nothing_and_leaves_nothing_behind(
    seed: int, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tally = Storm(home, tmp_path, seed).rage(60)
    assert tally.faults == []
    assert sum(tally.kills.values()) >= 60
