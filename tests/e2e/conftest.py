"""What the lives of runs have in common: a script's text in, a submitted run out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, ScriptRunConfig
from lapis.testing import Home


@pytest.fixture
def submit(experiment: Experiment, script: Callable[..., str]) -> Callable[..., Any]:
    """`submit('print(1)', arguments=[...])` gives the submitted run of that script."""

    def go(code: str, tags: Any = None, **config: Any) -> Any:
        return experiment.submit(ScriptRunConfig(script(code), script="train.py", **config), tags=tags)

    return go


@pytest.fixture
def finish(submit: Callable[..., Any]) -> Callable[..., Any]:
    """`finish('print(1)')` gives the run once it has ended, however it did."""

    def go(code: str, **config: Any) -> Any:
        run = submit(code, **config)
        run.wait_for_completion(raise_on_error=False)
        return run

    return go


@pytest.fixture
def python(on_shared_server: Home, tmp_path: Path) -> Callable[..., str]:
    """`python('print(1)')` runs a program in a process of its own, on the same server; what it printed."""

    def run(code: str, *arguments: str, expect: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run
