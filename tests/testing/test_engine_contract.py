"""The promises of an engine are found broken where they are, and a suite that lacks its engine says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FORGETFUL = """
import pytest
from lapis.engines.local import LocalEngine
from lapis.testing.engine_contract import EngineContract


class Forgetful(LocalEngine):
    def left(self):
        return {}


class TestForgetful(EngineContract):
    @pytest.fixture
    def engine(self, tmp_path):
        engine = Forgetful(str(tmp_path / "work"))
        launched = []
        launch = engine.launch
        engine.launch = lambda job: launched.append(launch(job)) or launched[-1]
        yield engine
        for handle in launched:
            engine.stop(handle, hard=True)
        engine.close()

    @pytest.fixture
    def another(self, tmp_path):
        return lambda: Forgetful(str(tmp_path / "work"))


class TestNothing(EngineContract):
    pass
"""


def test_a_broken_promise_is_found_and_a_missing_fixture_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_forgetful.py").write_text(FORGETFUL)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout
    assert "1 failed, 6 passed, 7 errors" in said, said
    assert "FAILED test_forgetful.py::TestForgetful::test_what_a_job_left_can_be_forgotten_twice" in said
    assert "assert {} == {'run-1'" in said, "what was found is shown"
    assert "TestNothing supplies no fixture `engine`" in said
