"""A verdict comes last: whatever a run logged and printed is with the server when the run has ended, however it did."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Run, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.runconfig import PyTorchConfiguration
from lapis.client import shipping
from lapis.testing import Home, until

MB = 1 << 20
LOG = "user_logs/std_log.txt"
# Logs and prints so much in one go that most of it has not been sent when the script ends.
WRITE = """
import os, signal, sys, time
from azureml.core import Run
run = Run.get_context()
points, lines = int(sys.argv[1]), int(sys.argv[2])
def write(name="text", run=run):
    for number in range(points):
        run.log(name, "%07d" % number + "." * 1000)
    sys.stdout.buffer.write(b"".join(b"%01023d\\n" % number for number in range(lines)))
    sys.stdout.flush()
"""
# The same when it is told to stop. There is little time then, so everything lies ready.
STOP = (
    WRITE
    + """
from lapis.domain.metrics import Point, to_line
logged = b"".join(to_line(Point("scalar", 1.0, "text", "%07d" % n + "." * 1000)) for n in range(points))
printed = b"".join(b"%01023d\\n" % n for n in range(lines))
def stop(*_):
    for path, data in ((run._recorder.journal.path, logged), ("/proc/self/fd/1", printed)):
        with open(path, "ab", buffering=0) as file:
            while data:
                data = data[file.write(data):]
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
open("outputs/ready", "w")
time.sleep(600)
"""
)
ENDS = {
    "completes": (WRITE + "write()\n", {}, "Completed", None),
    "fails": (WRITE + "write()\nsys.exit(3)\n", {}, "Failed", "ExitCode"),
    "is killed": (WRITE + "write()\nos.kill(os.getpid(), signal.SIGKILL)\n", {}, "Failed", "Signal"),
    "is cancelled": (STOP, {}, "Canceled", None),
    "is out of time": (STOP, {"max_run_duration_seconds": 10}, "Canceled", "TimedOut"),
}  # fmt: skip


class Amount:
    """So many bytes for the journal, and for the log, none of which need have been sent when the script ends."""

    def __init__(self, journal: int, log: int) -> None:
        self.points, self.lines = journal // 1050, log // 1024

    @property
    def arguments(self) -> list[str]:
        return [str(self.points), str(self.lines)]

    def check(self, run: Any, name: str = "text", log: str = LOG) -> None:
        values = run.get_metrics(name)[name]
        assert [int(value[:7]) for value in values] == list(range(self.points))
        assert hashlib.sha256(printed(run, log)).digest() == self._digest()

    def _digest(self) -> bytes:
        return hashlib.sha256(b"".join(b"%01023d\n" % number for number in range(self.lines))).digest()


SMALL = Amount(12 * MB, 12 * MB)
LARGE = Amount(50 * MB, 200 * MB)
amounts = pytest.mark.parametrize("amount", [SMALL, pytest.param(LARGE, marks=pytest.mark.full)], ids=["12MB", "200MB"])


def printed(run: Any, log: str) -> bytes:
    """What the script itself printed: whole lines of its log, without those that Lapis says."""
    pieces: list[bytes] = []
    run._client.download(f"{run._base}/files/{log}", pieces.append)
    data = b"".join(pieces)
    start = data.find(b"%01023d\n" % 0)
    return data[start:] if start >= 0 else data


@amounts
@pytest.mark.parametrize("how", ENDS)
def test_all_that_a_script_wrote_has_arrived_when_its_run_ends(
    how: str, amount: Amount, experiment: Experiment, script: Callable[..., str]
) -> None:
    code, limits, status, error = ENDS[how]
    config = ScriptRunConfig(script(code), script="train.py", arguments=amount.arguments)
    for name, value in limits.items():
        setattr(config.run_config, name, value)
    run = experiment.submit(config)
    if how == "is cancelled":
        until(lambda: "outputs/ready" in run.get_file_names() or run.get_status() not in ("Queued", "Running"))
        run.cancel()
    details = run.wait_for_completion(raise_on_error=False)
    assert (details["status"], code_of(details["error"]["error"]) if details.get("error") else None) == (status, error)
    amount.check(run)


@pytest.mark.parametrize(
    ("how", "victims", "amount"),
    [
        ("completes", "agent and server", SMALL),
        ("is out of time", "agent", SMALL),
        *(
            pytest.param(how, victims, LARGE, marks=pytest.mark.full)
            for how in ("completes", "is out of time")
            for victims in ("agent", "server", "agent and server")
        ),
    ],
)
def test_the_rest_arrives_though_agent_and_server_are_killed_while_it_is_sent(
    how: str, victims: str, amount: Amount, home: Home, script: Callable[..., str]
) -> None:
    code, limits, status, _ = ENDS[how]
    config = ScriptRunConfig(script(code), script="train.py", arguments=amount.arguments)
    for name, value in limits.items():
        setattr(config.run_config, name, value)
    run = Experiment(Workspace.from_config(), "delivery").submit(config)
    job = home.path / "work" / run.id

    def kill() -> None:
        until(lambda: (job / "exit.json").exists(), seconds=60)
        for pause in (0.0, 0.3, 0.7):
            time.sleep(pause)
            if "agent" in victims:
                kill_agent(job)
            if "server" in victims and home.server_pid is not None:
                home.kill_server()

    killer = threading.Thread(target=kill)
    killer.start()
    assert run.wait_for_completion(raise_on_error=False)["status"] == status
    killer.join()
    amount.check(run)


@amounts
def test_all_that_the_ranks_of_two_nodes_wrote_has_arrived_when_their_run_ends(
    amount: Amount, workspace: Workspace, experiment: Experiment, script: Callable[..., str]
) -> None:
    ComputeTarget.create(workspace, "nodes", AmlCompute.provisioning_configuration(max_nodes=2))
    code = WRITE + "run.log('first', 1)\nrun.flush(60)\nwrite('rank-' + os.environ['RANK'])\n"
    config = ScriptRunConfig(
        script(code), "train.py", arguments=amount.arguments, compute_target="nodes",
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=4, node_count=2),
    )  # fmt: skip
    run = experiment.submit(config)
    assert run.wait_for_completion()["status"] == "Completed"
    for rank in range(4):
        amount.check(run, f"rank-{rank}", f"user_logs/std_log_{rank}.txt")


@amounts
def test_all_that_a_child_logged_has_arrived_when_it_completes_or_its_parent_does(
    amount: Amount, experiment: Experiment, script: Callable[..., str]
) -> None:
    code = WRITE + (
        "first, second = run.child_run('first'), run.child_run('second')\n"
        "write('one', first)\nfirst.complete()\nassert len(first.get_metrics('one')['one']) == points\n"
        "lines = 0\nwrite('two', second)\n"
    )
    run = experiment.submit(ScriptRunConfig(script(code), script="train.py", arguments=amount.arguments))
    assert run.wait_for_completion()["status"] == "Completed"
    children = {child.name: child for child in run.get_children()}
    assert {child.get_status() for child in children.values()} == {"Completed"}
    for name, child in (("one", children["first"]), ("two", children["second"])):
        assert [int(value[:7]) for value in child.get_metrics()[name]] == list(range(amount.points))


@amounts
def test_get_metrics_right_after_complete_is_exact(amount: Amount, experiment: Experiment) -> None:
    run = experiment.start_logging()
    child = run.child_run()
    for number in range(amount.points):
        run.log("text", f"{number:07d}" + "." * 1000)
        child.log("number", number)
    run.complete()
    assert [int(value[:7]) for value in run.get_metrics()["text"]] == list(range(amount.points))
    assert child.get_metrics()["number"] == list(range(amount.points))


def test_a_fast_loop_of_many_points_loses_none(submit: Callable[..., Any]) -> None:
    """The case that was found: 14 MB of journal in a second, and the end."""
    run = submit(
        "from azureml.core import Run\nrun = Run.get_context()\nfor i in range(300000): run.log('x', i, step=i)\n"
    )
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics()["x"] == list(range(300000))


@amounts
@pytest.mark.parametrize("server_too", [pytest.param(False, marks=pytest.mark.full), True])
def test_what_a_killed_notebook_had_logged_is_brought_in(
    server_too: bool, amount: Amount, home: Home, tmp_path: Path
) -> None:
    code = f"""
import os, signal
from azureml.core import Workspace, Experiment
run = Experiment(Workspace.from_config(), "interactive").start_logging(run_id="the-run")
for number in range({amount.points}):
    run.log("text", "%07d" % number + "." * 1000)
os.write(run._own.journal._descriptor, b'["scalar",1.0,"text","cut in the mid')
os.kill(os.getpid(), signal.SIGKILL)
"""
    notebook = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.DEVNULL)
    notebook.wait(120)
    run = Run.get(Workspace.from_config(), "the-run")
    if server_too:
        home.kill_server()
        until(lambda: (home.path / "work" / run.id / "agent.json").exists() or run.get_status() == "Failed")
        kill_agent(home.path / "work" / run.id)
    details = run.wait_for_completion(raise_on_error=False)
    assert details["error"]["error"]["code"] == "OwnerGone"
    assert [int(value[:7]) for value in run.get_metrics()["text"]] == list(range(amount.points))
    assert "a line that was never finished" in details["warnings"][0]["message"]


# -- what comes in odd sizes


def test_one_line_longer_than_a_report_arrives_whole_and_those_around_it(submit: Callable[..., Any]) -> None:
    code = """
from azureml.core import Run
run = Run.get_context()
run.log("before", 1)
run.log_table("table", {"x": list(range(900000))})
run.log("after", 2)
run.log_table("other", {"y": list(range(900000))})
"""
    run = submit(code)
    run.wait_for_completion()
    numbers = list(range(900000))
    assert run.get_metrics() == {"before": 1, "table": {"x": numbers}, "after": 2, "other": {"y": numbers}}


@pytest.mark.parametrize(
    "text",
    ["b'x' * (20 << 20)", "os.urandom(9 << 20)", "b''.join(b'\\r %07d' % n for n in range(1 << 20))"],
    ids=["no newline", "junk", "progress bar"],
)
def test_a_log_arrives_byte_for_byte_whatever_is_in_it(text: str, submit: Callable[..., Any]) -> None:
    run = submit(
        f"import hashlib, os, sys\nfrom azureml.core import Run\ntext = {text}\nsys.stdout.buffer.write(text)\n"
        "Run.get_context().log('digest', hashlib.sha256(text).hexdigest())\n"
    )
    run.wait_for_completion()
    assert hashlib.sha256(printed(run, LOG)).hexdigest() == run.get_metrics()["digest"]


def test_a_file_in_logs_that_grows_by_much_at_the_end_arrives_whole(submit: Callable[..., Any]) -> None:
    code = "open('logs/a.txt', 'wb').write(b'a' * (9 << 20))\nopen('logs/b.txt', 'wb').write(b'b' * (5 << 20))\n"
    run = submit(code)
    run.wait_for_completion()
    assert printed(run, "logs/a.txt") == b"a" * (9 * MB)
    assert printed(run, "logs/b.txt") == b"b" * (5 * MB)


def test_a_log_that_its_script_begins_anew_is_kept_as_it_is_at_the_end(submit: Callable[..., Any]) -> None:
    code = """
import os, time
from azureml.core import Run
run = Run.get_context()
def seen(size):
    while not any(f == "logs/train.log" and len(run._text_of(f)) == size for f in run.get_file_names()):
        time.sleep(0.05)
for name, text in (("train.log", "old" * 100), ("other.log", "other" * 100)):
    open("logs/" + name, "w").write(text)
seen(300)
os.rename("logs/train.log", "logs/train.log.1")
open("logs/train.log", "w").write("new" * 200)
open("logs/other.log", "w").write("cut")
"""
    run = submit(code)
    run.wait_for_completion()
    kept = {name: printed(run, name) for name in run.get_file_names() if name.startswith("logs/")}
    assert kept == {
        "logs/other.log": b"cut",
        "logs/train.log": b"new" * 200,
        "logs/train.log.1": b"old" * 100,
    }


def test_pieces_of_any_size_make_the_same_run(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "_AT_ONCE", 64)
    with experiment.start_logging() as run:
        for number in range(200):
            run.log("x", number)
            run.log("text", "t" * number)
    assert run.get_metrics() == {"x": list(range(200)), "text": ["t" * number for number in range(200)]}


# -- what cannot be delivered


def test_a_run_whose_journal_was_removed_says_so_and_has_not_completed(
    submit: Callable[..., Any], on_shared_server: Home, tmp_path: Path
) -> None:
    code = """
import os, sys, time
from azureml.core import Run
Run.get_context().log("x", 1)
open(sys.argv[1] + ".logged", "w").close()
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
"""
    mark = tmp_path / "mark"
    run = submit(code, arguments=[str(mark)])
    until(lambda: Path(f"{mark}.logged").exists())
    (on_shared_server.path / "work" / run.id / "journal.jsonl").unlink()
    mark.touch()
    details = ended(run)
    assert details["status"] == "Failed"
    error = details["error"]["error"]
    assert error["code"] == "NotDelivered"
    assert "Ended with exit code 0" in error["message"] and "1 of the things it wrote" in error["message"]
    assert "What it logged after its first" in error["message"] and "No such file" in error["message"]


def test_a_run_with_an_image_that_cannot_be_read_says_so_and_has_not_completed(submit: Callable[..., Any]) -> None:
    code = """
import os, sys
run_id = os.environ["AZUREML_RUN_ID"]
os.makedirs(os.path.join(os.environ["LAPIS_RUN_FOLDER"], "files", run_id, "image.png"))
sys.exit(int(sys.argv[1]))
"""
    error = ended(submit(code, arguments=["0"]))["error"]["error"]
    assert error["code"] == "NotDelivered" and "image.png" in error["message"]
    error = ended(submit(code, arguments=["7"]))["error"]["error"]
    assert code_of(error) == "ExitCode" and "exit code 7" in error["message"] and "image.png" in error["message"]


def test_a_line_that_was_never_finished_is_a_warning(submit: Callable[..., Any]) -> None:
    code = """
import os
from azureml.core import Run
Run.get_context().log("x", 1)
with open(os.path.join(os.environ["LAPIS_RUN_FOLDER"], "journal.jsonl"), "ab") as file:
    file.write(b'["scalar",1.0,"x",')
"""
    run = submit(code)
    details = ended(run)
    assert details["status"] == "Completed"
    assert run.get_metrics() == {"x": 1}
    assert "ends with 18 bytes of a line that was never finished" in details["warnings"][0]["message"]


def test_an_output_with_a_name_that_cannot_be_stored_is_a_warning(submit: Callable[..., Any]) -> None:
    details = ended(submit("open('outputs/new\\nline', 'w').write('x')\n"))
    assert details["status"] == "Completed"
    assert "no run can have a file of that name" in details["warnings"][0]["message"]


def test_what_is_logged_to_a_child_when_its_parent_has_completed_is_kept(experiment: Experiment) -> None:
    run = experiment.start_logging()
    child = run.child_run()
    child.log("x", 1)
    run.complete()
    child.log("x", 2)
    child.log_confusion_matrix("late", {"class_labels": ["a"], "matrix": [[1]]})
    assert child.get_metrics("x") == {"x": [1, 2]}
    assert child.get_metrics("late", populate=True)["late"]["data"]["matrix"] == [[1]]


def test_what_other_threads_log_while_the_run_completes_is_kept(experiment: Experiment) -> None:
    run = experiment.start_logging()
    enough, counts = threading.Event(), [0, 0, 0]

    def log(which: int) -> None:
        while not enough.is_set():
            run.log(f"thread-{which}", counts[which])
            counts[which] += 1

    threads = [threading.Thread(target=log, args=(which,)) for which in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: min(counts) > 100)
    run.complete()
    logged = list(counts)
    until(lambda: all(now > before for now, before in zip(counts, logged, strict=True)))
    enough.set()
    for thread in threads:
        thread.join()
    metrics = run.get_metrics()
    assert [metrics[f"thread-{which}"] for which in range(3)] == [list(range(count)) for count in counts]


def code_of(error: dict[str, Any]) -> str:
    """Lapis' own code of an error; the outer one is Azure's for all that a script did."""
    return str(error.get("innerError", error)["code"])


def ended(run: Any) -> dict[str, Any]:
    details: dict[str, Any] = run.wait_for_completion(raise_on_error=False)
    return details


def kill_agent(job: Path) -> None:
    try:
        os.kill(json.loads((job / "agent.json").read_text())["pid"], signal.SIGKILL)
    except (OSError, ValueError):
        pass  # it has ended
