"""What `lapis` says about itself, and how it says that a command cannot be understood."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lapis.version import VERSION
from tests.cli.conftest import Lapis

COMMANDS = [
    "init",
    "adopt",
    "serve",
    "prepare-server",
    "status",
    "stop",
    "open",
    "login",
    "logout",
    "gc",
    "backup",
    "restore",
    "doctor",
    "run",
    "sweep",
    "pipeline",
    "env",
    "compute",
    "dataset",
    "datastore",
    "model",
    "service",
    "secret",
    "experiment",
    "workspace",
]
RUN_COMMANDS = [
    "submit",
    "list",
    "show",
    "logs",
    "metrics",
    "compare",
    "files",
    "download",
    "cancel",
    "delete",
    "archive",
]
SWEEP_COMMANDS = ["submit", "show"]
PIPELINE_COMMANDS = ["list", "show", "logs", "graph"]
ENV_COMMANDS = ["list", "show", "build", "diff", "verify", "prune"]
COMPUTE_COMMANDS = ["create", "list", "show", "update", "delete", "preempt"]
MODEL_COMMANDS = ["list", "show", "register", "download", "export"]
DATASET_COMMANDS = ["list", "show", "register"]
DATASTORE_COMMANDS = ["list", "show", "upload", "download"]
SERVICE_COMMANDS = ["list", "show", "logs", "call", "delete"]


def test_the_version_is_told(lapis: Lapis) -> None:
    said = lapis("--version")
    assert (said.status, said.out) == (0, f"lapis {VERSION}\n")


@pytest.mark.parametrize(
    ("group", "commands"),
    [
        ([], COMMANDS),
        (["run"], RUN_COMMANDS),
        (["sweep"], SWEEP_COMMANDS),
        (["pipeline"], PIPELINE_COMMANDS),
        (["env"], ENV_COMMANDS),
        (["compute"], COMPUTE_COMMANDS),
        (["dataset"], DATASET_COMMANDS),
        (["datastore"], DATASTORE_COMMANDS),
        (["model"], MODEL_COMMANDS),
        (["service"], SERVICE_COMMANDS),
    ],
)
def test_a_group_without_a_command_tells_what_it_holds(lapis: Lapis, group: list[str], commands: list[str]) -> None:
    alone, asked = lapis(*group), lapis(*group, "--help")
    assert alone == asked and alone.status == 0
    listed = [line.split()[0] for line in alone.out.partition("Commands:\n")[2].splitlines() if line[2:3] != " "]
    assert listed == commands


GROUPS = {
    "run": RUN_COMMANDS,
    "sweep": SWEEP_COMMANDS,
    "pipeline": PIPELINE_COMMANDS,
    "env": ENV_COMMANDS,
    "compute": COMPUTE_COMMANDS,
    "dataset": DATASET_COMMANDS,
    "datastore": DATASTORE_COMMANDS,
    "model": MODEL_COMMANDS,
    "service": SERVICE_COMMANDS,
}
EVERY = [*COMMANDS[:7], *(f"{group} {name}" for group, names in GROUPS.items() for name in names)]


@pytest.mark.parametrize("command", [*EVERY, "workspace list"])
def test_every_command_explains_itself_and_offers_json(lapis: Lapis, command: str) -> None:
    said = lapis(*command.split(), "--help")
    assert said.status == 0
    assert f"Usage: lapis {command}" in said.out and "--json" in said.out
    assert lapis(*command.split(), "-h") == said


def test_help_is_quick_as_it_loads_nothing_heavy() -> None:
    program = (
        "import sys; from lapis.cli.__main__ import main; main(['run', '--help']);"
        "heavy = {'rich', 'http', 'pydantic', 'fastapi', 'sqlalchemy'};"
        "print([name for name in sys.modules if name.split('.')[0] in heavy or name.startswith('lapis.sdk')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["fly"], ["run", "fly"], ["run", "list", "--fly"], ["run", "show"]])
def test_what_cannot_be_understood_is_one_line_and_status_2(lapis: Lapis, arguments: list[str]) -> None:
    said = lapis(*arguments)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("Error: ") and said.err.count("\n") == 1
    assert (
        f"See `{' '.join(['lapis', *arguments[:-1]] if arguments[-1] != 'show' else ['lapis', *arguments])} --help`"
        in said.err
    )


def test_with_json_a_usage_error_is_a_document_too(lapis: Lapis) -> None:
    said = lapis("run", "list", "--json", "--fly")
    assert said.status == 2
    assert said.json["error"]["code"] == "Usage" and "--fly" in said.json["error"]["message"]
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "offered"), [("", COMMANDS), ("run s", ["submit", "show"]), ("run submit --ta", ["--tag", "--target"])]
)
def test_bash_completes_commands_and_options_as_the_docs_say(typed: str, offered: list[str], tmp_path: Path) -> None:
    program = tmp_path / "lapis"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m lapis.cli "$@"\n')
    program.chmod(0o755)
    words = ["lapis", *typed.split(" ")]
    typing = (
        'eval "$(_LAPIS_COMPLETE=source_bash lapis)"; '
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _lapis_completion lapis; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", typing], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert (done.stderr, sorted(done.stdout.split())) == ("", sorted(offered))


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_too(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lapis.cli"], env={**os.environ, "_LAPIS_COMPLETE": f"source_{shell}"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and f"_LAPIS_COMPLETE=complete_{shell}" in done.stdout
