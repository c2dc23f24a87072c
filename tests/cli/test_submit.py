"""`lapis run submit`: what reaches the script, what is sent, and what would be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lapis.sdk.environments.environment import Environment
from lapis.sdk.runs.run import Run
from lapis.sdk.workspace.workspace import Workspace
from lapis.testing import Home
from tests.cli.conftest import Lapis, Start

SHOW_ARGUMENTS = "import json, os, sys\nprint(json.dumps([sys.argv[1:], os.environ.get('COLOUR')]))\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "my source"
    folder.mkdir()
    (folder / "train.py").write_text(SHOW_ARGUMENTS)
    (folder / ".amlignore").write_text("data/\n")
    (folder / "data").mkdir()
    (folder / "data" / "big.py").write_text("x" * 1000)
    return folder


def test_what_follows_the_script_is_handed_to_it_untouched(lapis: Lapis, here: Workspace, source: Path) -> None:
    own = ["--epochs", "3", "--json", "--help", "-f", "--", "--tag", "a b", ""]
    said = lapis("run", "submit", "-f", "--source", str(source), "train.py", *own)
    assert said.status == 0
    assert said.out == f"[{str(own).replace(chr(39), chr(34))}, null]\n"


def test_options_before_the_script_describe_the_run(lapis: Lapis, here: Workspace, source: Path) -> None:
    options = ["--experiment", "mnist", "--name", "Best of all", "--tag", "team=a", "--tag", "keep"]
    options += ["--env", "COLOUR=a=b", "--max-seconds", "50", "--source", str(source)]
    said = lapis("run", "submit", "--json", "--follow", *options, "train.py")
    assert said.status == 0
    run = Run.get(here, said.json["id"])
    assert said.json["status"] == "Completed" and said.json["portal_url"] == run.get_portal_url()
    assert (said.json["experiment"], said.json["name"]) == ("mnist", "Best of all")
    assert run.tags == {"team": "a", "keep": None}
    assert run.get_logs()["user_logs/std_log.txt"] == '[[], "a=b"]\n'
    assert run.get_details()["runDefinition"]["maxRunDurationSeconds"] == 50


def test_submit_returns_at_once_and_says_how_to_go_on(lapis: Lapis, here: Workspace, source: Path) -> None:
    said = lapis("run", "submit", "--source", str(source), "train.py")
    run = next(iter(Run.list(here.experiments["my-source"])))
    assert said.status == 0 and run.id in said.out and run.get_portal_url() in said.out
    assert f"lapis run logs -f {run.id}" in said.out


def test_a_command_runs_in_the_folder(lapis: Lapis, here: Workspace, source: Path) -> None:
    said = lapis("run", "submit", "-f", "--source", str(source), "--command", "ls *.py; echo $((1 + 1))")
    assert (said.status, said.out) == (0, "train.py\n2\n")


def test_another_python_runs_the_script(lapis: Lapis, here: Workspace, source: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho mine "$@"\n')
    python.chmod(0o755)
    said = lapis("run", "submit", "-f", "--source", str(source), "--python", str(python), "train.py", "x")
    assert said.status == 0 and said.out.startswith("mine ") and said.out.endswith("train.py x\n")


def test_following_a_run_that_fails_ends_with_status_1(lapis: Lapis, here: Workspace, source: Path) -> None:
    (source / "train.py").write_text("print('out'); raise SystemExit(7)")
    said = lapis("run", "submit", "-f", "--source", str(source), "train.py")
    assert (said.status, said.out) == (1, "out\n")
    assert "failed: Ended with exit code 7." in said.err
    said = lapis("run", "submit", "--json", "-f", "--source", str(source), "train.py")
    assert said.status == 1 and said.json["status"] == "Failed" and said.json["error"]["exitCode"] == 7


def test_a_run_that_takes_too_long_is_stopped(lapis: Lapis, here: Workspace, source: Path) -> None:
    (source / "train.py").write_text("import time; time.sleep(60)")
    said = lapis("run", "submit", "--json", "-f", "--max-seconds", "1", "--source", str(source), "train.py")
    assert said.status == 1 and said.json["status"] == "Canceled" and said.json["error"]["code"] == "TimedOut"


def test_a_dry_run_says_what_would_be_sent_and_sends_nothing(lapis: Lapis, home: Home, source: Path) -> None:
    said = lapis("run", "submit", "--dry-run", "--json", "--source", str(source), "train.py", "--epochs", "3")
    assert said.status == 0
    plan = said.json
    assert plan["files"] == [
        {"path": ".amlignore", "size": 6},
        {"path": "train.py", "size": len(SHOW_ARGUMENTS)},
    ]
    assert plan["total_size"] == 6 + len(SHOW_ARGUMENTS)
    assert plan["skipped"] == [{"path": "data/", "reason": "rule 'data/' of .amlignore"}]
    assert (plan["script"], plan["arguments"], plan["experiment"]) == ("train.py", ["--epochs", "3"], "my-source")
    shown = lapis("run", "submit", "--dry-run", "--source", str(source), "./train.py").out
    assert "train.py" in shown and "rule 'data/' of .amlignore" in shown and "Nothing was sent." in shown
    assert home.server_pid is None  # nobody was asked


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--source", "SOURCE", "nothing.py"], 1, "no script 'nothing.py' in"),
        (["--source", "nowhere", "train.py"], 1, "not a folder"),
        (["--source", "SOURCE", "--experiment", "a b", "train.py"], 1, "Experiment name 'a b'"),
        (["--source", "SOURCE", "--dry-run", "nothing.py"], 1, "no such file in"),
        (["--source", "SOURCE", "--dry-run", "data/big.py"], 1, "rule 'data/' of .amlignore"),
        (["--source", "SOURCE", "--dry-run", "--experiment", "a b", "train.py"], 1, "Experiment name 'a b'"),
        (["--env", "COLOUR", "train.py"], 2, "'COLOUR' is not of the form NAME=VALUE"),
        (["--tag", "=x", "train.py"], 2, "'=x' is not of the form"),
        (["--max-seconds", "0", "train.py"], 2, "--max-seconds"),
        (["--command", "ls", "train.py"], 2, "either a script or --command"),
        ([], 2, "either a script or --command"),
    ],
)
def test_what_cannot_be_submitted(
    lapis: Lapis, here: Workspace, source: Path, arguments: list[str], status: int, words: str
) -> None:
    said = lapis("run", "submit", *(str(source) if word == "SOURCE" else word for word in arguments))
    assert said.status == status and words in said.err and said.err.count("\n") == 1
    assert lapis("run", "list", "--json").json["runs"] == []


def test_a_large_upload_is_told_in_lines_where_no_terminal_is(start: Start, here: Workspace, source: Path) -> None:
    with open(source / "weights.bin", "wb") as file:
        file.truncate(40_000_000)
        file.write(os.urandom(16))
    door = os.path.join(os.environ["LAPIS_HOME"], "door", "files")
    os.rename(door, door + ".shut")  # so that it is sent, as to another machine
    try:
        out, err = start("run", "submit", "--json", "--source", str(source), "train.py").communicate()
    finally:
        os.rename(door + ".shut", door)
    told = [line for line in err.splitlines() if line.startswith("Sending the snapshot: ")]
    assert len(told) == 10 and told[-1] == "Sending the snapshot: 40.0 MB of 40.0 MB"
    assert out.startswith("{") and "Sending" not in out


def test_a_run_goes_to_a_target_on_nodes_with_a_distribution(lapis: Lapis, here: Workspace, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])")
    lapis("compute", "create", "cluster", "--max-nodes", "2")
    where = ["--target", "cluster", "--nodes", "2", "--distribution", "pytorch"]
    said = lapis("run", "submit", "--json", "-f", *where, "train.py")
    assert (said.status, said.json["status"], said.json["target"]) == (0, "Completed", "cluster")
    assert "of 2" in lapis("run", "logs", said.json["id"]).out


def test_an_environment_is_a_registered_one_or_a_file(lapis: Lapis, here: Workspace, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os; print('it is', os.environ['COLOUR'])")
    environment = Environment("mine")
    environment.python.user_managed_dependencies = True
    environment.register(here)
    said = lapis("run", "submit", "-f", "--environment", "mine:1", "--env", "COLOUR=blue", "train.py")
    assert said.status == 0 and "it is blue" in said.out
    unknown = lapis("run", "submit", "--environment", "yours", "train.py")
    assert unknown.status == 1 and "Environment 'yours' could not be found" in unknown.err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--distribution", "ring"], "'ring' is not known. Known: mpi, pytorch, tensorflow"),
        (["--processes", "2"], "say which processes with --distribution"),
        (["--distribution", "tensorflow", "--processes", "2"], "one worker on each node"),
    ],
)
def test_what_cannot_be_distributed_is_told(lapis: Lapis, here: Workspace, options: list[str], why: str) -> None:
    said = lapis("run", "submit", *options, "train.py")
    assert said.status == 2 and why in said.err
