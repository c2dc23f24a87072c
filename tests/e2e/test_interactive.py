"""Runs that live in this process: from start_logging() to complete(), or to the process's own end."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from azureml.core import Experiment, Run, Workspace
from azureml.exceptions import UserErrorException

BEGIN = (
    "import os, sys\nfrom azureml.core import Experiment, Workspace\n"
    "run = Experiment(Workspace.get(sys.argv[1]), 'trial').start_logging(run_id='here')\n"
    "run.log('x', 1)\n"
)


def test_a_run_begins_with_start_logging_and_ends_with_complete(experiment: Experiment) -> None:
    run = experiment.start_logging(name="first")
    assert run.get_status() == "Running"
    assert (run.name, run.experiment, run.number, run.type) == ("first", experiment, 1, None)
    details = run.get_details()
    assert details["target"] == "sdk" and "endTimeUtc" not in details and "runDefinition" not in details
    run.log("x", 1)
    run.complete()
    assert run.get_status() == "Completed"
    assert run.get_details()["endTimeUtc"] >= run.get_details()["startTimeUtc"]
    assert run.get_metrics() == {"x": 1}


def test_leaving_the_block_completes_the_run(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        run.log("x", 1)
    assert run.get_status() == "Completed"


def test_an_exception_in_the_block_fails_the_run_and_goes_on(experiment: Experiment) -> None:
    with pytest.raises(KeyError), experiment.start_logging() as run:
        run.log("x", 1)
        raise KeyError("no such column")
    assert run.get_status() == "Failed"
    assert (
        run.get_details()["error"]["error"].items()
        >= {"code": "KeyError", "message": "KeyError: 'no such column'"}.items()
    )
    assert run.get_metrics() == {"x": 1}


def test_a_run_that_ended_inside_its_block_stays_so(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        run.fail("not good enough", error_code="TooBad")
    assert run.get_status() == "Failed"
    error = run.get_details()["error"]["error"]
    assert (error["code"], error["message"]) == ("TooBad", "not good enough")


def test_ending_twice_changes_nothing(experiment: Experiment) -> None:
    run = experiment.start_logging()
    run.complete()
    stages = run.get_details()["stages"]
    run.complete()
    run.fail("late")
    assert run.get_details()["stages"] == stages and run.get_status() == "Completed"


def test_outputs_and_logs_are_made_and_taken_up(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "of yesterday").write_text("old")
    os.utime(tmp_path / "outputs" / "of yesterday", (1e9, 1e9))
    with experiment.start_logging() as run:
        (tmp_path / "outputs" / "model.txt").write_text("weights")
        (tmp_path / "outputs" / "deep").mkdir()
        (tmp_path / "outputs" / "deep" / "big.bin").write_bytes(os.urandom(1 << 20))
        (tmp_path / "logs" / "train.log").write_text("epoch 1")
        assert run.get_file_names() == []
    assert run.get_file_names() == ["logs/train.log", "outputs/deep/big.bin", "outputs/model.txt"]


def test_a_change_of_folder_does_not_lose_the_outputs(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with experiment.start_logging() as run:
        Path("outputs/model.txt").write_text("weights")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
    assert run.get_file_names() == ["outputs/model.txt"]


def test_another_folder_may_be_named_for_outputs(experiment: Experiment, tmp_path: Path) -> None:
    with experiment.start_logging(outputs=str(tmp_path / "results")) as run:
        (tmp_path / "results" / "a.txt").write_text("a")
    assert run.get_file_names() == ["results/a.txt"]


def test_an_upload_and_the_same_output_are_one_file(experiment: Experiment, tmp_path: Path) -> None:
    with experiment.start_logging() as run:
        Path("outputs/model.txt").write_text("weights")
        run.upload_file("outputs/model.txt", "outputs/model.txt")
        run.upload_file("by hand", io.BytesIO(b"x"))
    assert run.get_file_names() == ["by hand", "outputs/model.txt"]


def test_a_snapshot_of_a_folder_is_kept(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print(1)")
    (tmp_path / "code" / ".git").mkdir()
    (tmp_path / "code" / ".git" / "HEAD").write_text("ref: refs/heads/main")
    with experiment.start_logging(snapshot_directory=tmp_path / "code") as run:
        assert run.get_details()["properties"]["ContentSnapshotId"] == run.get_snapshot_id()
    with zipfile.ZipFile(run.restore_snapshot(path=tmp_path / "back")) as archive:
        assert archive.namelist() == ["train.py"]


def test_a_run_without_a_snapshot_says_so_and_can_take_one(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with experiment.start_logging() as run:
        with pytest.raises(UserErrorException, match=f"{run.id} has no snapshot"):
            run.get_snapshot_id()
        assert run.take_snapshot(tmp_path / "notes.txt") == run.get_snapshot_id()
    with zipfile.ZipFile(Run.get(experiment.workspace, run.id).restore_snapshot(path=tmp_path)) as archive:
        assert archive.read("notes.txt") == b"x"


def test_several_runs_live_side_by_side(experiment: Experiment) -> None:
    runs = [experiment.start_logging() for _ in range(5)]
    for number, run in enumerate(runs * 3):
        run.log("number", number)
    for run in reversed(runs):
        run.complete()
    assert [run.get_metrics()["number"] for run in runs] == [[n, n + 5, n + 10] for n in range(5)]


# -- the end of the process


def test_the_end_of_the_process_completes_the_run(workspace: Workspace, python: Callable[..., str]) -> None:
    python(BEGIN + "open('outputs/model.txt', 'w').write('weights')", workspace.name)
    run = Run.get(workspace, "here")
    assert run.get_status() == "Completed"
    assert run.get_metrics() == {"x": 1} and run.get_file_names() == ["outputs/model.txt"]


def test_an_exception_that_ends_the_process_fails_the_run(workspace: Workspace, python: Callable[..., str]) -> None:
    python(BEGIN + "raise ValueError('the loss is NaN')", workspace.name, expect=1)
    run = Run.get(workspace, "here")
    assert run.get_status() == "Failed"
    assert (
        run.get_details()["error"]["error"].items()
        >= {"code": "ValueError", "message": "ValueError: the loss is NaN"}.items()
    )
    assert run.get_metrics() == {"x": 1}


def test_an_exception_that_was_caught_does_not_fail_the_run(workspace: Workspace, python: Callable[..., str]) -> None:
    """Notebooks show an exception and go on: what counts is how the process ends."""
    python(
        BEGIN + "sys.last_value = sys.last_exc = ValueError('a cell failed')  # as IPython does\nrun.log('x', 2)\n",
        workspace.name,
    )
    assert Run.get(workspace, "here").get_status() == "Completed"


def test_a_process_that_is_killed_has_failed_its_run_and_lost_no_point(
    workspace: Workspace, python: Callable[..., str]
) -> None:
    python(BEGIN + "run.child_run(run_id='below').log('y', 2)\nos.kill(os.getpid(), 9)", workspace.name, expect=-9)
    run = Run.get(workspace, "here")
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Failed"
    assert "ended without completing this run" in run.get_details()["error"]["error"]["message"]
    assert run.get_metrics(recursive=True) == {"here": {"x": 1}, "below": {"y": 2}}
    assert Run.get(workspace, "below").get_status() == "Canceled"


def test_logging_after_the_end_is_still_kept(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        run.log("x", 1)
    run.log("x", 2)
    assert run.get_metrics() == {"x": [1, 2]}
    assert run.get_status() == "Completed"
