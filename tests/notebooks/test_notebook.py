"""The example notebook and the example scripts run as they stand, and leave behind what they say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from azureml.core import Experiment, Run, Workspace
from lapis.testing import Home
from tests.kept import kept_home

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def executed(workspace: Workspace, tmp_path: Path) -> Any:
    """The notebook after every cell has run, in a folder of its own, on a workspace of its own."""
    workspace.write_config()
    notebook = nbformat.read(EXAMPLES / "manage-runs.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}})
    return client.execute()


def shown_by(notebook: Any, part: str) -> str:
    """What the cell whose code holds `part` printed or displayed."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and part in cell.source]
    texts = [output.get("text") or output["data"].get("text/html") or "" for output in cell.outputs]
    return "".join(texts)


def test_the_notebook_runs_and_shows_what_a_reader_expects(executed: Any, workspace: Workspace) -> None:
    runs = {run.display_name: run for run in Experiment(workspace, "manage-runs").get_runs()}
    logged, folds = runs.pop("logged from a notebook"), runs.pop("five folds")
    by_status = {run.get_status(): run for run in runs.values()}
    completed, failed, canceled = by_status["Completed"], by_status["Failed"], by_status["Canceled"]
    assert len(runs) == 3

    assert logged.id in shown_by(executed, "notebook_run.complete()") and logged.get_status() == "Completed"
    metrics = logged.get_metrics(populate=True)
    assert metrics["loss"] == [1 / n for n in range(1, 6)] and metrics["optimizer"] == "sgd"
    assert metrics["per angle"] == {"angle": [0, 25, 50, 75], "share": [0, 0.25, 0.5, 0.75]}
    assert metrics["per class"] == {"class": ["cat", "dog"], "recall": [0.9, 0.8]}
    assert metrics["fibonacci"] == [0, 1, 1, 2, 3, 5, 8]
    for plot in ("confusion", "accuracy table", "predictions", "residuals"):
        assert metrics[plot]["data"], plot
    pictures = [name for name in logged.get_file_names() if name.endswith(".png")]
    assert metrics["loss curve"].endswith(pictures[0]) and len(pictures) == 1
    assert "outputs/notes.txt" in shown_by(executed, 'print("files:"')

    streamed = shown_by(executed, "show_output=True")
    assert streamed.startswith(f"RunId: {completed.id}\nWeb View: http")
    assert "Streaming user_logs/std_log.txt" in streamed and "epoch 9 loss" in streamed
    assert "Execution Summary" in streamed
    assert "status: Completed" in shown_by(executed, 'output_file_path="model.txt"')
    assert "author' of run" in shown_by(executed, "different-user")
    assert completed.get_tags() == {"purpose": "example", "quality": "fantastic run", "reviewed": None}
    assert "[True]" in shown_by(executed, "experiment.get_runs(properties")

    assert shown_by(executed, "create_children") == "best fold: 4\nall at once: 5\n"
    assert {child.get_status() for child in folds.get_children()} == {"Completed"}
    assert "ValueError: column 'label' is missing" in shown_by(executed, "ActivityFailedException")
    assert "exit code 1" in failed.get_details()["error"]["error"]["message"]
    assert shown_by(executed, "endless.cancel()") == "status: Canceled\n"
    assert canceled.get_details()["endTimeUtc"]

    assert shown_by(executed, "subprocess.check_output").startswith("Completed 10 ['azureml-logs/70_driver_log.txt'")
    assert Run.get(workspace, completed.id).get_metrics()["loss"][-1] == pytest.approx(0.7**10)


@pytest.mark.parametrize("name", ["manage-runs.ipynb", "digits.ipynb"])
def test_the_notebook_is_kept_clean(name: str) -> None:
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None


def test_the_training_example_runs_in_ten_lines(
    on_shared_server: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES / "train-digits", tmp_path / "train-digits")
    (tmp_path / "here").mkdir()
    done = subprocess.run(
        [sys.executable, tmp_path / "train-digits" / "submit.py"],
        cwd=tmp_path / "here", capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epoch 10: loss" in done.stdout
    accuracy = float(done.stdout.strip().splitlines()[-1])
    assert accuracy > 0.9
    assert json.loads((tmp_path / "here" / "model.json").read_text())["accuracy"] == accuracy
    monkeypatch.chdir(tmp_path / "here")
    run = next(Experiment(Workspace.from_config(), "train-digits").get_runs())
    metrics = run.get_metrics(populate=True)
    assert len(metrics["loss"]) == len(metrics["accuracy"]) == 10
    assert metrics["loss"][-1] < metrics["loss"][0]
    assert sum(map(sum, metrics["confusion"]["data"]["matrix"])) == 200


@pytest.mark.full
@pytest.mark.xdist_group("frameworks")
def test_the_notebook_about_digits_goes_from_data_to_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DIGITS", str(EXAMPLES / "digits"))
    with kept_home() as home:
        monkeypatch.setenv("LAPIS_HOME", str(home.path))
        Workspace.create("digits-" + os.urandom(4).hex(), show_output=False).write_config()
        notebook = nbformat.read(EXAMPLES / "digits.ipynb", as_version=4)
        where = {"metadata": {"path": tmp_path}}
        executed = NotebookClient(notebook, timeout=500, kernel_name="python3", resources=where).execute()
    assert "epoch 4/4" in shown_by(executed, "show_output=True)[")
    assert shown_by(executed, "service.wait_for_deployment").splitlines()[-1].startswith("Healthy http://127.0.0.1:")
    share = shown_by(executed, "are read right").split("%")[0]
    assert float(share) > 94
    assert "digits.onnx" in shown_by(executed, "export_onnx(")
