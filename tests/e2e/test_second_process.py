"""Other processes see and do the same, under every Python that training code still uses."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from azureml.core import Environment, Experiment, Run, ScriptRunConfig, Workspace
from lapis.testing import Home
from tests.sdk.test_import import SOURCE, every_interpreter

EVERYTHING = """
run.log("loss", 0.5); run.log("loss", 0.25)
run.log_list("list", (n for n in range(3)))
run.log_row("row", x=1, y=2.5)
run.log_table("table", {"a": [1, 2]})
run.log_confusion_matrix("matrix", {"class_labels": ["a"], "matrix": [[1]]})
with open("p.png", "wb") as file: file.write(b"picture")
run.log_image("image", path="p.png")
run.tag("python", "%d.%d" % sys.version_info[:2])
with run.child_run("below") as child: child.log("x", 1)
"""
LOGGED = {"loss": [0.5, 0.25], "list": [0, 1, 2], "row": {"x": 1, "y": 2.5}, "table": {"a": [1, 2]}}

CLIENT = f"""
import json, os, sys, threading
from azureml.core import Environment, Experiment, Run, ScriptRunConfig, Workspace
ws = Workspace.from_config()
experiment = Experiment(ws, "from-afar")
with experiment.start_logging(snapshot_directory="source") as run:
    with open("outputs/model.txt", "w") as file: file.write("weights")
    {EVERYTHING.strip().replace(chr(10), chr(10) + "    ")}
submitted = experiment.submit(ScriptRunConfig("source", script="train.py", arguments=["--n", 3]), tags={{"a": "b"}})
submitted.wait_for_completion(show_output=True)
assert submitted.get_metrics() == {{"n": 3}}, submitted.get_metrics()
submitted.download_file("outputs/made.txt", "fetched.txt")
assert open("fetched.txt").read() == "made"
assert [r.id for r in experiment.get_runs(tags={{"a": "b"}})] == [submitted.id]
failing = experiment.submit(ScriptRunConfig("source", command=["python", "-c", "\\"raise ValueError('no')\\""]))
try: failing.wait_for_completion()
except Exception as error: assert "ValueError: no" in str(error), error
else: raise AssertionError("it did not fail")
try: Run.get(ws, "not-there")
except Exception as error: assert type(error).__name__ == "NotFound" and "not-there" in str(error)
print("ids", json.dumps([run.id, submitted.id, failing.id]))
"""
SCRIPT = """
import argparse
from azureml.core import Run
parser = argparse.ArgumentParser(); parser.add_argument("--n", type=int)
run = Run.get_context()
run.log("n", parser.parse_args().n)
open("outputs/made.txt", "w").write("made")
print("hello from the script")
"""


def run_in(python: str, code: str, folder: Path) -> str:
    """Run `code` in an interpreter that has nothing installed: our source on its path is all it gets."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PYTHONPATH"] = str(SOURCE)
    done = subprocess.run(
        [python, "-B", "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_logged(run: Any) -> None:
    metrics = run.get_metrics(populate=True)
    assert {name: metrics[name] for name in LOGGED} == LOGGED
    assert metrics["matrix"]["data"] == {"class_labels": ["a"], "matrix": [[1]]}
    assert [child.get_metrics() for child in run.get_children()] == [{"x": 1}]


@every_interpreter
def test_a_bare_interpreter_is_a_client_of_the_running_server(
    python: str, workspace: Workspace, tmp_path: Path
) -> None:
    workspace.write_config()
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(SCRIPT)
    shown = run_in(python, CLIENT, tmp_path)
    assert "hello from the script" in shown and "Execution Summary" in shown
    logged, submitted, failed = json.loads(shown.rsplit("ids ", 1)[1])
    run = Run.get(workspace, logged)
    assert run.get_status() == "Completed"
    assert "outputs/model.txt" in run.get_file_names()
    assert_logged(run)
    assert Run.get(workspace, submitted).get_status() == "Completed"
    assert Run.get(workspace, failed).get_status() == "Failed"


@every_interpreter
def test_a_script_runs_under_the_interpreter_that_its_environment_names(
    python: str, experiment: Experiment, script: Callable[..., str]
) -> None:
    environment = Environment("old")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = python
    code = "import sys\nfrom azureml.core import Run\nprint(sys.executable)\nrun = Run.get_context()\n" + EVERYTHING
    run = experiment.submit(ScriptRunConfig(script(code), script="train.py", environment=environment))
    run.wait_for_completion()
    assert run.get_logs()["user_logs/std_log.txt"].strip() == python
    assert_logged(run)
    version = subprocess.check_output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True)
    assert run.get_tags() == {"python": version.strip()}


def test_a_run_outlives_the_process_that_submitted_it(
    workspace: Workspace, python: Callable[..., str], script: Callable[..., str], tmp_path: Path
) -> None:
    folder = script(
        "import os, sys, time\nfrom azureml.core import Run\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.02)\nRun.get_context().log('after', 1)\n"
    )
    run_id = python(
        "import sys\nfrom azureml.core import Experiment, ScriptRunConfig, Workspace\n"
        "config = ScriptRunConfig(sys.argv[2], script='train.py', arguments=[sys.argv[3]])\n"
        "print(Experiment(Workspace.get(sys.argv[1]), 'trial').submit(config).id)\n",
        workspace.name, folder, str(tmp_path / "go"),
    ).strip()  # fmt: skip
    (tmp_path / "go").touch()
    run = Run.get(workspace, run_id)
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"after": 1}


def test_two_processes_that_start_the_server_at_once_both_work(home: Home, tmp_path: Path) -> None:
    import sys

    code = (
        "import sys\nfrom azureml.core import Experiment, Workspace\n"
        "with Experiment(Workspace.from_config(), 'race').start_logging(run_id=sys.argv[1]) as run: run.log('x', 1)\n"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", code, f"run-{number}"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    said = [racer.communicate(timeout=60)[1] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 4, said
    runs = Experiment(Workspace.from_config(), "race").get_runs()
    assert {run.id: run.get_metrics() for run in runs} == {f"run-{number}": {"x": 1} for number in range(4)}
