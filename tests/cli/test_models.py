"""`lapis model`: register, show, download."""

from __future__ import annotations

from pathlib import Path

from lapis.sdk.workspace.workspace import Workspace
from tests.cli.conftest import Finished, Lapis


def test_a_file_becomes_a_model_and_comes_back(lapis: Lapis, here: Workspace, tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_text("weights")
    options = ["--framework", "ScikitLearn", "--tag", "team=a", "--description", "first"]
    assert lapis("model", "register", *options, "digits", "m.pkl").out == "Registered model digits:1.\n"
    shown = lapis("model", "show", "digits").out
    assert "Model        digits:1" in shown and "Framework    ScikitLearn" in shown and "m.pkl" in shown
    assert lapis("model", "download", "digits:1", "-o", "here").out == "here/m.pkl\n"
    assert (tmp_path / "here" / "m.pkl").read_text() == "weights"
    unknown = lapis("model", "show", "letters")
    assert unknown.status == 1 and "No model named 'letters'" in unknown.err


def test_a_file_of_a_run_becomes_a_model(lapis: Lapis, finished: Finished) -> None:
    made = lapis("model", "register", *finished.where, "--json", "--run", finished.id, "m", "outputs/model.bin").json
    assert made["name"] == "m" and made["runId"] == finished.id
