"""A script that was started by hand: it prints what it would have logged, and nothing else happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from azureml.core import Run
from azureml.core.run import _OfflineRun
from azureml.exceptions import RunEnvironmentException


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _OfflineRun:
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    found: _OfflineRun = Run.get_context()
    return found


def test_it_has_an_id_of_its_own(run: _OfflineRun) -> None:
    assert isinstance(run, _OfflineRun)
    assert run.id.startswith("OfflineRun_") and run.id != Run.get_context().id
    assert run.id in repr(run)


def test_it_prints_what_it_would_have_logged(run: _OfflineRun, capsys: pytest.CaptureFixture[str]) -> None:
    results = [
        run.log("loss", 0.5),
        run.log_list("squares", (n * n for n in range(3))),
        run.log_row("row", "described", x=1, y=2),
        run.log_table("table", {"a": [1]}),
        run.log_image("image", path="x.png"),
        run.log_confusion_matrix("matrix", {}),
        run.log_accuracy_table("accuracy", {}),
        run.log_predictions("predictions", {}),
        run.log_residuals("residuals", {}),
        run.upload_file("a", "b"),
        run.upload_folder("a", "b"),
    ]
    assert results == [None] * len(results)
    shown = capsys.readouterr().out
    for name in ("loss", "squares", "row", "table", "image", "matrix", "accuracy", "predictions", "residuals"):
        assert name in shown
    assert "0.5" in shown and "[0, 1, 4]" in shown and "x: 1, y: 2" in shown


def test_a_script_that_manages_its_run_goes_on(run: _OfflineRun) -> None:
    with run as same, same.child_run("fold") as child:
        child.log("x", 1)
        run.tag("a", "b")
        run.set_tags({"c": "d"})
        run.add_properties({"p": "q"})
    run.flush()
    run.complete()
    run.fail("anyway")
    run.cancel()


@pytest.mark.parametrize("name", ["get_metrics", "get_status", "get_details", "get_file_names", "experiment"])
def test_what_needs_a_record_is_not_there(run: _OfflineRun, name: str) -> None:
    with pytest.raises(AttributeError):
        getattr(run, name)


def test_offline_can_be_refused(run: _OfflineRun) -> None:
    with pytest.raises(RunEnvironmentException, match="AZUREML_RUN_ID"):
        Run.get_context(allow_offline=False)


def test_no_server_is_started_and_nothing_is_written(tmp_path: Path) -> None:
    code = "from azureml.core import Run\nrun = Run.get_context()\nrun.log('x', 1)\nrun.complete()"
    environment = {"PATH": "/usr/bin", "LAPIS_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
