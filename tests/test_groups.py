"""Tests of one `xdist_group` run in one process: what they share is started once, and gigabytes are needed once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

GROUPED = """
import os
import pytest

@pytest.mark.parametrize("number", range(8))
@pytest.mark.xdist_group("together")
def test_of_the_group(number):
    with open(__file__ + ".ran", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""
HOOKS = "from tests.conftest import pytest_collection_modifyitems\n"


def test_tests_of_a_group_run_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    test = tmp_path / "test_grouped.py"
    test.write_text(GROUPED)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-o", f"pythonpath={Path(__file__).parents[1]}", "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    workers = Path(f"{test}.ran").read_text().split()
    assert len(workers) == 8 and len(set(workers)) == 1
