"""`lapis run logs`: the log as it grows, as it stands, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import signal
from collections.abc import Callable
from pathlib import Path

from lapis.sdk.runs.experiment import Experiment
from lapis.sdk.workspace.workspace import Workspace
from tests.cli.conftest import Finished, Lapis, Start

LOG = b"hello from the script\n\x1b[32mgreen\x1b[0m \x1b]0;a title\x07\x1b[2Jplain\n"


def test_a_line_arrives_before_the_run_ends(
    lapis: Lapis, start: Start, here: Workspace, script: Callable[..., str], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    folder = script(
        f"import os, time\nprint('first', flush=True)\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('last')\n"
    )
    run = lapis("run", "submit", "--json", "--source", folder, "train.py").json["id"]
    following = start("run", "logs", "-f", run)
    assert following.stdout is not None
    assert following.stdout.readline() == "first\n"
    assert lapis("run", "show", "--json", run).json["status"] == "Running"
    assert lapis("run", "logs", run).out == "first\n"  # as it stands, without waiting
    assert [each["id"] for each in lapis("run", "list", "--json", "--status", "running").json["runs"]] == [run]
    go.touch()
    assert following.communicate()[0] == "last\n" and following.returncode == 0


def test_ctrl_c_ends_the_following_but_not_the_run(
    lapis: Lapis, start: Start, here: Workspace, script: Callable[..., str]
) -> None:
    folder = script("import time\nprint('up', flush=True)\nwhile True: time.sleep(1)\n")
    run = lapis("run", "submit", "--json", "--source", folder, "train.py").json["id"]
    following = start("run", "logs", "-f", run)
    assert following.stdout is not None and following.stdout.readline() == "up\n"
    following.send_signal(signal.SIGINT)
    _, err = following.communicate()
    assert following.returncode == 130 and f"Run {run} goes on" in err and "Traceback" not in err
    assert lapis("run", "show", "--json", run).json["status"] == "Running"
    lapis("run", "cancel", run)


def test_following_an_ended_run_prints_its_log(lapis: Lapis, finished: Finished) -> None:
    assert lapis("run", "logs", "-f", *finished.where, finished.id).out.encode() == LOG


def test_a_pipe_gets_every_byte(start: Start, finished: Finished) -> None:
    process = start("run", "logs", *finished.where, finished.id)
    assert process.communicate()[0].encode() == LOG


def test_a_terminal_gets_text_and_colours_only(start: Start, finished: Finished) -> None:
    for follow in ([], ["--follow"]):
        ours, terminal = pty.openpty()
        process = start("run", "logs", *follow, *finished.where, finished.id, stdout=terminal)
        os.close(terminal)
        assert everything(ours) == b"hello from the script\r\n\x1b[32mgreen\x1b[0m plain\r\n\x1b[0m"
        assert process.wait() == 0


def test_json_holds_the_whole_text(lapis: Lapis, finished: Finished) -> None:
    for follow in ([], ["-f"]):
        said = lapis("run", "logs", "--json", *follow, *finished.where, finished.id)
        expected = {"id": finished.id, "name": "user_logs/std_log.txt", "status": "Completed", "text": LOG.decode()}
        assert said.json == expected


def test_another_log_is_chosen_by_its_name(lapis: Lapis, finished: Finished) -> None:
    name = "azureml-logs/70_driver_log.txt"
    assert lapis("run", "logs", *finished.where, finished.id, "--name", name).out.encode() == LOG


def test_a_log_that_is_not_there_is_told_with_those_that_are(lapis: Lapis, finished: Finished) -> None:
    for follow in ([], ["-f"]):
        said = lapis("run", "logs", *follow, *finished.where, finished.id, "--name", "nothing.txt")
        assert said.status == 1 and "no file named 'nothing.txt'" in said.err and "user_logs/std_log.txt" in said.err


def test_a_run_that_wrote_no_log_says_so(lapis: Lapis, here: Workspace) -> None:
    Experiment(here, "trial").start_logging(run_id="silent").complete()
    for follow in ([], ["-f"]):
        said = lapis("run", "logs", *follow, "silent")
        assert (said.status, said.out) == (0, "") and "Run silent has written no log. It is Completed" in said.err
        assert lapis("run", "logs", *follow, "silent", "--json").json["text"] == ""


def everything(descriptor: int) -> bytes:
    """All that is written to the other end of a terminal until its last user closes it."""
    pieces = []
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # Linux says so when the other end is closed
            piece = b""
        if not piece:
            os.close(descriptor)
            return b"".join(pieces)
        pieces.append(piece)
