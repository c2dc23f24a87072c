"""A list of forms that is kept outside of the repository, where a checkout of the project has one beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lapis.testing import Home

LIST = Path(__file__).parents[3] / "shared" / "conformance" / "found.py"
# Words of the forms that need neither packages from an index nor minutes.
WORDS = [
    "cluster", "Workspace", "model_framework", "Mock", "arguments", "register_model", "import", "UNAPPROVED", "outputs",
    "default CPU", "DEFAULT_CPU", "columns", "time_", "separator", "reload", "star import",
    "str(dataset)", "target", "ws.get_details",
]  # fmt: skip


@pytest.mark.full
@pytest.mark.skipif(not LIST.is_file(), reason="no list of forms lies beside this checkout")
def test_every_form_of_the_list_works(home: Home, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(LIST), *WORDS], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("BUG")] == [], done.stderr
