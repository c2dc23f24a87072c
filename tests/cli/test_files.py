"""run files and run download."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import pytest

from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from tests.cli.conftest import Finished, Lapis, Start
from tests.cli.test_logs import LOG, everything


def test_files_are_listed(lapis: Lapis, finished: Finished) -> None:
    found = lapis("run", "files", "--json", *finished.where, finished.id).json["files"]
    model = next(file for file in found if file["name"] == "outputs/model.bin")
    assert (
        model["size"] == 2_000_000 and len(model["hash"]) == 64 and set(model) == {"name", "size", "hash", "created_at"}
    )
    shown = lapis("run", "files", *finished.where, finished.id).out
    assert "outputs/model.bin" in shown and "2.0 MB" in shown


def test_a_run_without_files_says_so(lapis: Lapis, here: Workspace, tmp_path: Path) -> None:
    Experiment(here, "trial").start_logging(run_id="bare").complete()
    assert "has no files" in lapis("run", "files", "bare").err
    assert lapis("run", "download", "bare").out == f"0 files, 0 B, in {tmp_path / 'bare'}\n"


def test_download_writes_all_files_into_a_folder_named_after_the_run(
    lapis: Lapis, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = lapis("run", "download", "--json", *finished.where, finished.id)
    root = tmp_path / finished.id
    assert said.json["folder"] == str(root) and str(root / "outputs" / "model.bin") in said.json["files"]
    assert (root / "outputs" / "model.bin").read_bytes() == b"m" * 2_000_000
    assert (root / "user_logs" / "std_log.txt").read_bytes() == LOG


def test_download_takes_only_what_a_prefix_names(lapis: Lapis, finished: Finished, tmp_path: Path) -> None:
    target = tmp_path / "here"
    said = lapis("run", "download", *finished.where, finished.id, "--prefix", "outputs/", "--output", str(target))
    assert said.out == f"1 file, 2.0 MB, in {target}\n"
    assert [path.name for path in target.iterdir()] == ["outputs"]


def test_a_prefix_that_names_nothing_is_told(lapis: Lapis, finished: Finished) -> None:
    said = lapis("run", "download", *finished.where, finished.id, "--prefix", "output/")
    assert said.status == 1 and "no file whose name begins with 'output/'" in said.err
    assert "outputs/model.bin" in said.err


def test_a_folder_that_cannot_be_written_is_one_line(lapis: Lapis, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = lapis("run", "download", "--json", *finished.where, finished.id, "--output", str(tmp_path / "file" / "x"))
    assert said.status == 1 and said.json["error"]["code"] == "UserError"
    assert str(tmp_path / "file") in said.err and "cannot be written" in said.err and said.err.count("\n") == 1


def test_a_download_shows_a_bar_on_a_terminal_and_never_on_stdout(
    start: Start, finished: Finished, tmp_path: Path
) -> None:
    ours, terminal = pty.openpty()
    process = start(
        "run", "download", "--json", *finished.where, finished.id, "--output", str(tmp_path / "x"), stderr=terminal
    )
    os.close(terminal)
    shown = everything(ours)
    assert b"Downloading" in shown and b"MB" in shown
    assert json.loads(process.communicate()[0])["total_size"] >= 2_000_000 and process.returncode == 0
