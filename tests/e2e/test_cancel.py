"""cancel() in every state of a run, and on trees of processes that would rather live on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from lapis.testing import Home, until, until_written
from tests.processes import processes_with

Submit = Callable[..., Any]
SLEEP = "import sys, time\nopen(sys.argv[1], 'w').write('begun\\n')\ntime.sleep(600)\n"


@pytest.fixture
def running(submit: Submit, tmp_path: Path) -> Any:
    """A run whose script has begun."""
    run = submit(SLEEP, arguments=[tmp_path / "begun"])
    until_written(tmp_path / "begun")
    return run


def test_a_running_script_is_stopped(running: Any) -> None:
    began = time.monotonic()
    running.cancel()
    assert running.get_status() in ("CancelRequested", "Canceled")
    details = running.wait_for_completion(show_output=False)
    assert details["status"] == "Canceled" and time.monotonic() - began < 5
    assert details["stages"][-1]["reason"] == "Stopped: cancel was asked for"
    assert "error" not in details


def test_a_run_that_is_being_cancelled_is_found_by_that(submit: Submit, tmp_path: Path) -> None:
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEP
    run = submit(stubborn, arguments=[tmp_path / "begun"])
    until_written(tmp_path / "begun")
    until(lambda: [each.id for each in Run.list(run.experiment, status="Running")] == [run.id])
    run.cancel()
    assert [each.id for each in Run.list(run.experiment, status="CancelRequested")] == [run.id]
    assert list(Run.list(run.experiment, status="Running")) == []
    run.wait_for_completion(show_output=False)
    assert [each.id for each in Run.list(run.experiment, status=["CancelRequested", "Canceled"])] == [run.id]


def test_waiting_for_a_cancelled_run_shows_how_it_ended(running: Any, capsys: pytest.CaptureFixture[str]) -> None:
    running.cancel()
    running.wait_for_completion(show_output=True)
    assert "Status: Canceled (Stopped: cancel was asked for)" in capsys.readouterr().out


def test_what_a_cancelled_script_saves_when_told_is_kept(submit: Submit, tmp_path: Path) -> None:
    run = submit(
        "import signal, sys, time\nfrom azureml.core import Run\n"
        "def save(*_):\n"
        "    Run.get_context().log('saved', 1)\n"
        "    open('outputs/checkpoint', 'w').write('step 7')\n"
        "    print('saved'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "open(sys.argv[1], 'w').write('begun\\n')\n"
        "time.sleep(600)\n",
        arguments=[tmp_path / "begun"],
    )
    until_written(tmp_path / "begun")
    run.cancel()
    assert run.wait_for_completion()["status"] == "Canceled"
    assert run.get_metrics() == {"saved": 1}
    assert "outputs/checkpoint" in run.get_file_names()
    assert run.get_logs()["user_logs/std_log.txt"] == "saved\n"


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
below = "import os, signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
grandchild = below + "print(os.getpid(), flush=True); time.sleep(600)"
child = below + f"subprocess.Popen([sys.executable, '-c', {grandchild!r}]); {grandchild[len(below):]}"
print(os.getpid())
subprocess.Popen([sys.executable, "-c", child])
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
subprocess.run("(trap '' TERM; setsid sh -c 'trap \\"\\" TERM; echo $$; while :; do sleep 600; done' &)", shell=True)
subprocess.run("(setsid env -i sleep 600 & echo $!)", shell=True)  # no parent, no environment, no session of ours
time.sleep(600)
"""


def test_no_process_of_a_stubborn_tree_survives(submit: Submit) -> None:
    nap = f"600.{uuid4().int % 10**9}"  # a number that nobody else sleeps for: pids may be a namespace's own
    run = submit(STUBBORN.replace("600", nap))

    def pids() -> list[int]:
        words = run.get_logs().get("user_logs/std_log.txt", "").split()
        return [int(word) for word in words if word.isdigit()]  # a shell may say that its child was killed

    until(lambda: len(pids()) == 7)
    assert len(processes_with(nap)) >= len(pids()) - 1, "all but the script itself"
    began = time.monotonic()
    run.cancel()
    assert run.wait_for_completion()["status"] == "Canceled"
    assert time.monotonic() - began < 15
    until(lambda: not processes_with(nap))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_queued_run_never_starts(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAPIS_MAX_RUNS", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(SLEEP)
    experiment = Experiment(Workspace.from_config(), "queue")
    first, second, third = (
        experiment.submit(ScriptRunConfig(tmp_path / "source", script="train.py", arguments=[tmp_path / name]))
        for name in ("first", "second", "third")
    )
    until_written(tmp_path / "first")
    second.cancel()
    assert second.get_status() == "Canceled"
    assert second.wait_for_completion()["status"] == "Canceled"
    assert "startTimeUtc" not in second.get_details() or second.get_details()["startTimeUtc"] is None
    first.cancel()
    until_written(tmp_path / "third")
    third.cancel()
    assert {run.wait_for_completion()["status"] for run in (first, third)} == {"Canceled"}
    assert not (tmp_path / "second").exists()


def test_a_run_is_cancelled_at_any_moment_of_its_start(submit: Submit, tmp_path: Path) -> None:
    """From the instant it is accepted to the first lines of its script."""
    for number in range(8):
        run = submit(SLEEP, arguments=[tmp_path / f"begun-{number}"])
        time.sleep(number * 0.04)  # not for luck: each round meets another moment
        run.cancel()
        assert run.wait_for_completion()["status"] == "Canceled"
        pids = [entry for entry in os.listdir("/proc") if entry.isdigit() and mentions(int(entry), run.id)]
        until(lambda pids=pids: not any(alive(int(pid)) for pid in pids))


def test_once_a_run_is_canceled_its_script_never_starts(home: Home, tmp_path: Path, script: Callable[..., str]) -> None:
    """A cancel that meets the launch: whichever comes first, the verdict comes last, and nothing is left behind."""
    config = ScriptRunConfig(script(SLEEP), script="train.py")
    experiment = Experiment(Workspace.from_config(), "race")
    late = []
    for number in range(10):
        begun = tmp_path / f"begun-{number}"
        config.arguments = [begun]
        run = experiment.submit(config)
        run.cancel()
        assert run.wait_for_completion()["status"] == "Canceled"
        if not begun.exists():
            late.append(begun)
    until(lambda: not list((home.path / "work").iterdir()))
    assert not [begun.name for begun in late if begun.exists()]
    assert not [entry for entry in (home.path / "live").rglob("*") if entry.is_file()]


def mentions(pid: int, run_id: str) -> bool:
    try:
        return f"AZUREML_RUN_ID={run_id}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (OSError, ProcessLookupError):
        return False


def test_the_second_of_two_concurrent_cancels_changes_nothing(running: Any) -> None:
    workspace = running.experiment.workspace
    threads = [threading.Thread(target=Run.get(workspace, running.id).cancel) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    running.wait_for_completion()
    running.cancel()
    stages = running.get_details()["stages"]
    assert [stage["state"] for stage in stages].count("Canceled") == 1
    assert len([stage for stage in stages if stage["reason"].startswith("Asked to stop")]) == 1


def test_a_run_that_has_ended_stays_as_it_ended(finish: Submit, experiment: Experiment) -> None:
    completed, failed = finish("print(1)"), finish("raise SystemExit(1)")
    with experiment.start_logging() as interactive:
        pass
    for run in (completed, failed, interactive):
        before = run.get_details()["stages"]
        run.cancel()
        assert run.get_details()["stages"] == before
    assert [run.get_status() for run in (completed, failed, interactive)] == ["Completed", "Failed", "Completed"]


def test_a_script_can_cancel_its_own_run(finish: Submit) -> None:
    run = finish(
        "import time\nfrom azureml.core import Run\nprint('enough')\nRun.get_context().cancel()\ntime.sleep(600)"
    )
    assert run.get_status() == "Canceled"
    assert run.get_logs()["user_logs/std_log.txt"] == "enough\n"


def test_an_interactive_run_can_be_cancelled_from_inside_and_outside(experiment: Experiment) -> None:
    inside = experiment.start_logging()
    inside.log("x", 1)
    inside.cancel()
    assert inside.get_status() == "Canceled" and inside.get_metrics() == {"x": 1}

    outside = experiment.start_logging()
    Run.get(experiment.workspace, outside.id).cancel()
    outside.log("x", 2)
    outside.complete()  # its owner does not know yet, and need not
    assert outside.get_status() == "Canceled"
    assert outside.get_metrics() == {"x": 2}


def test_cancelling_a_parent_cancels_all_below_it(submit: Submit, tmp_path: Path) -> None:
    parent = submit(
        "import sys\nfrom azureml.core import Run, ScriptRunConfig\n"
        "run = Run.get_context()\n"
        "child = run.child_run()\n"
        "run.submit_child(ScriptRunConfig('.', command=['sleep', '600'])).wait_for_completion()\n",
    )
    submitted = until(lambda: next(parent.get_children(type="azureml.scriptrun"), None))
    until(lambda: submitted.get_status() == "Running")
    parent.cancel()
    assert parent.wait_for_completion()["status"] == "Canceled"
    assert {run.wait_for_completion()["status"] for run in parent.get_children()} == {"Canceled"}
    assert len(list(parent.get_children())) == 2


def test_a_run_is_cancelled_while_its_server_restarts(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(SLEEP)
    config = ScriptRunConfig(tmp_path / "source", script="train.py", arguments=[tmp_path / "begun"])
    run = Experiment(Workspace.from_config(), "restart").submit(config)
    until_written(tmp_path / "begun")
    home.kill_server()
    run.cancel()
    assert run.wait_for_completion()["status"] == "Canceled"
