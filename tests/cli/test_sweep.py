"""`lapis sweep`: a search from the command line."""

from __future__ import annotations

import os
import pty
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lapis.sdk.workspace.workspace import Workspace
from tests.cli.conftest import Lapis, Start

TRAIN = """
import argparse
from azureml.core import Run
parser = argparse.ArgumentParser()
parser.add_argument("--fixed")
parser.add_argument("--lr", type=float)
parser.add_argument("--batch-size", type=int)
given = parser.parse_args()
Run.get_context().log("loss", given.lr * given.batch_size)
"""
SEARCH = ["sweep", "submit", "--metric", "loss", "--goal", "minimize", "--sampling", "grid", "--concurrent", "2"]
SEARCH += ["--param", "lr=choice(0.5, 0.25)", "--param", "--batch-size=16,32"]


@pytest.fixture
def source(here: Workspace, tmp_path: Path) -> str:
    (tmp_path / "train.py").write_text(TRAIN)
    return str(tmp_path)


def test_a_search_is_submitted_followed_and_shown(lapis: Lapis, source: str) -> None:
    said = lapis(*SEARCH, "--follow", "train.py", "--fixed", "x")
    assert said.status == 0, said.err
    assert "GRID sampling over 4 combinations" in said.out
    assert "completed: All 4 runs have ended: 4 completed. The best loss is 4" in said.err
    run_id = said.err.split("Submitted search ")[1].split()[0]

    shown = lapis("sweep", "show", run_id)
    lines = shown.out.splitlines()
    assert lines[0].startswith(f"{run_id} is Completed: All 4 runs have ended")
    assert lines[1].split() == ["RUN", "STATUS", "lr", "--batch-size", "LOSS", "LAST", "POINTS", "TIME"]
    assert [line.split()[2:5] for line in lines[2:]] == [
        ["0.25", "16", "4"], ["0.5", "16", "8"], ["0.25", "32", "8"], ["0.5", "32", "16"]
    ]  # fmt: skip
    document = lapis("sweep", "show", run_id, "--json").json
    assert document["sweep"]["goal"] == "minimize"
    assert sorted(trial["best"] for trial in document["trials"]) == [4, 8, 8, 16]
    assert lapis("sweep", "show", run_id, "--limit", "1").out.count("Completed") == 2
    assert "The best loss is 4" in lapis("run", "logs", run_id).out
    assert "is no search" in lapis("sweep", "show", f"{run_id}_0").err


def test_a_search_that_is_not_followed_says_how_to(lapis: Lapis, source: str) -> None:
    said = lapis(*SEARCH, "--name", "first", "--tag", "team=a", "--seed", "3", "train.py")
    assert "Follow:  lapis sweep show -f HD_" in said.out
    run_id = said.out.split()[2]
    document = lapis("sweep", "show", "-f", "--json", run_id).json
    assert (document["status"], document["name"], document["tags"]["team"]) == ("Completed", "first", "a")
    assert document["sweep"]["sampling"]["seed"] == 3


def test_on_a_terminal_the_table_lives(source: str, start: Start) -> None:
    ours, theirs = pty.openpty()
    process = start(
        *SEARCH, "-f", "train.py", cwd=source, stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "160"}
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert process.wait() == 0
    text = seen.decode()
    assert "\x1b[2K" in text, "lines are drawn again in place"
    assert "--batch-size" in text and "Completed" in text and "The best loss is 4" in text


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        (["--param", "lr"], 2, "NAME=VALUES"),
        (["--param", "lr=gauss(1, 2)"], 2, "'gauss' is not known. Known: choice, uniform"),
        (["--param", "lr=uniform(1)"], 2, "max_value"),
        (["--param", "lr=uniform(__import__('os'), 1)"], 2, "cannot be read"),
        (["--param", "lr=uniform(0, 1)"], 1, "Grid sampling tries all values"),
        (["--sampling", "sobol"], 2, "Known: random, grid, bayesian"),
        (["--policy", "hyperband"], 2, "Known: bandit, median, truncation, asha"),
        (["--policy", "bandit"], 1, "slack_factor or slack_amount"),
        (["--policy", "bandit(slack=1)"], 2, "slack"),
        (["--metric", ""], 2, "say which metric"),
        (["--goal", "best"], 1, "PrimaryMetricGoal"),
    ],
)
def test_what_cannot_be_searched_is_said(
    lapis: Lapis, source: str, changes: list[str], status: int, said: str
) -> None:  # fmt: skip
    done = lapis(*SEARCH, *changes, "train.py")
    assert (done.status, done.out) == (status, "")
    assert said in done.err


def test_policies_are_written_as_calls(lapis: Lapis, source: str) -> None:
    policies: dict[str, Callable[[Any], bool]] = {
        "median": lambda got: got["name"] == "MedianStopping",
        "bandit(slack_factor=0.2, delay_evaluation=5)": lambda got: got["properties"]["delay_evaluation"] == 5,
        "asha(reduction_factor=2)": lambda got: got["properties"]["reduction_factor"] == 2,
    }
    for text, fits in policies.items():
        run_id = lapis(*SEARCH, "--policy", text, "--total", "1", "--json", "train.py").json["id"]
        assert fits(lapis("sweep", "show", run_id, "--json").json["sweep"]["policy"]), text
