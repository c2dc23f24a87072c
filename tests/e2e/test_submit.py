"""A submitted script: what reaches it, where it runs, what is kept, and how its end is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from azureml.core import Environment, Experiment, RunConfiguration, ScriptRunConfig, Workspace
from azureml.exceptions import ActivityFailedException
from lapis.testing import Home, until, until_written
from tests.needs import need
from tests.processes import processes_with

Submit = Callable[..., Any]
LOG = "user_logs/std_log.txt"


def printed(run: Any) -> str:
    text: str = run.get_logs()[LOG]
    return text


def printed_json(run: Any) -> Any:
    return json.loads(printed(run))


# -- what reaches the script


def test_arguments_reach_the_script_as_text(finish: Submit) -> None:
    run = finish("import sys, json; print(json.dumps(sys.argv))", arguments=["--lr", 0.01, "--n", 3, "a b", True])
    assert printed_json(run) == ["train.py", "--lr", "0.01", "--n", "3", "a b", "True"]
    assert run.get_details()["runDefinition"]["arguments"] == ["--lr", "0.01", "--n", "3", "a b", "True"]


def test_names_in_arguments_are_replaced_by_the_jobs_variables(finish: Submit) -> None:
    run = finish(
        "import sys, json; print(json.dumps(sys.argv[1:]))",
        arguments=["$AZUREML_RUN_ID", "to/${AZUREML_ARM_PROJECT_NAME}/x", "$NOT_A_VARIABLE", "5$"],
    )
    assert printed_json(run) == [run.id, "to/trial/x", "$NOT_A_VARIABLE", "5$"]


def test_a_command_as_a_list_is_joined_with_spaces_and_run_by_a_shell(experiment: Experiment, script: Submit) -> None:
    folder = script("import sys; print(sys.argv[1:])")
    command = ["python train.py", "--x", 3, "'a b'", "$AZUREML_ARM_PROJECT_NAME", "&&", "echo", "done"]
    run = experiment.submit(ScriptRunConfig(folder, command=command))
    run.wait_for_completion()
    assert printed(run) == "['--x', '3', 'a b', 'trial']\ndone\n"


def test_a_command_as_text_is_a_shell_line(experiment: Experiment, script: Submit) -> None:
    folder = script("import sys; print('python says', sys.executable)")
    config = ScriptRunConfig(folder, command="echo one && python train.py; echo $AZUREML_ARM_PROJECT_NAME | tr a-z A-Z")
    run = experiment.submit(config)
    run.wait_for_completion()
    assert printed(run) == f"one\npython says {sys.executable}\nTRIAL\n"


def test_a_folder_without_any_file_can_run_a_command(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    run = experiment.submit(ScriptRunConfig(tmp_path / "empty", command="ls -A"))
    run.wait_for_completion()
    assert printed(run) == "logs\noutputs\n"


def test_a_script_in_a_subfolder_runs_from_the_top_and_imports_from_both(
    experiment: Experiment, tmp_path: Path
) -> None:
    source = tmp_path / "project"
    (source / "steps").mkdir(parents=True)
    (source / "top.py").write_text("name = 'top'")
    (source / "steps" / "beside.py").write_text("name = 'beside'")
    (source / "steps" / "train.py").write_text("import os, top, beside; print(top.name, beside.name, os.listdir('.'))")
    run = experiment.submit(ScriptRunConfig(source, script="steps/train.py"))
    run.wait_for_completion()
    assert printed(run).startswith("top beside [")
    assert "'steps'" in printed(run)


def test_the_variables_that_jobs_rely_on_are_there(workspace: Workspace, finish: Submit) -> None:
    run = finish("import json, os; print(json.dumps(dict(os.environ)))")
    variables = printed_json(run)
    expected = {
        "AZUREML_RUN_ID": run.id,
        "AZUREML_ARM_SUBSCRIPTION": workspace.subscription_id,
        "AZUREML_ARM_RESOURCEGROUP": workspace.resource_group,
        "AZUREML_ARM_WORKSPACE_NAME": workspace.name,
        "AZUREML_ARM_PROJECT_NAME": "trial",
        "AZUREML_EXPERIMENT_ID": run.experiment.id,
        "AZUREML_WORKSPACE_ID": workspace.get_details()["workspaceid"],
        "AZUREML_FRAMEWORK": "Python",
        "AZUREML_COMMUNICATOR": "None",
        "AZUREML_NODE_COUNT": "1",
        "PYTHONUNBUFFERED": "1",
    }
    assert {name: variables.get(name) for name in expected} == expected
    for name in ("RUN_TOKEN", "RUN_TOKEN_EXPIRY", "SERVICE_ENDPOINT", "DISCOVERY_SERVICE_ENDPOINT", "TARGET_TYPE"):
        assert variables[f"AZUREML_{name}"], name
    for name in ("RUN_TOKEN_RAND", "RUN_TOKEN_PASS", "PROCESS_NAME"):
        assert f"AZUREML_{name}" in variables, name
    assert os.path.basename(variables["AZUREML_OUTPUT_DIRECTORY"]) == "outputs"
    assert os.path.basename(variables["AZUREML_LOGDIRECTORY_PATH"]) == "logs"
    assert "AZUREML_EXPERIMENT_NAME" not in variables


def test_the_users_own_token_does_not_reach_the_script(on_shared_server: Home, finish: Submit) -> None:
    token = Path(on_shared_server.settings.token_file).read_text().strip()
    run = finish("import json, os; print(json.dumps(dict(os.environ)))")
    assert token not in printed(run)


def test_environment_variables_of_the_environment_and_of_the_run_configuration_are_set(
    experiment: Experiment, script: Submit, finish: Submit
) -> None:
    show = "import os; print(os.environ['COLOUR'], os.environ['AZUREML_RUN_ID'] != 'mine')"
    environment = Environment("colours")
    environment.environment_variables = {"COLOUR": "lapis", "AZUREML_RUN_ID": "mine"}
    assert printed(finish(show, environment=environment)) == "lapis True\n"

    config = ScriptRunConfig(script(show), script="train.py", run_config=RunConfiguration())
    config.run_config.environment.environment_variables["COLOUR"] = "azure"
    run = experiment.submit(config)
    run.wait_for_completion()
    assert printed(run) == "azure True\n"


def test_the_script_runs_in_this_interpreter_unless_another_is_named(finish: Submit) -> None:
    show = "import sys; print(sys.executable)"
    assert printed(finish(show)).strip() == sys.executable
    environment = Environment("mine")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = "/no/such/python"
    run = finish(show, environment=environment)
    assert run.get_status() == "Failed"
    assert "/no/such/python is not on this machine" in run.get_details()["error"]["error"]["message"]


def test_local_may_be_named_as_the_target(finish: Submit, experiment: Experiment, script: Submit) -> None:
    assert finish("print(1)", compute_target="local").get_details()["target"] == "local"
    config = ScriptRunConfig(script("print(1)"), script="train.py", run_config=RunConfiguration())
    config.run_config.target = "local"
    run = experiment.submit(config)
    assert run.wait_for_completion()["status"] == "Completed"


def test_an_environment_that_is_not_built_is_told_in_the_log_and_the_details(
    finish: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPIS_ENVIRONMENTS", "host")
    environment = Environment("with-packages")
    environment.python.conda_dependencies.add_pip_package("scikit-learn")
    run = finish("print('hello')", environment=environment)
    first, *rest = printed(run).splitlines()
    assert first.startswith("Lapis: ") and "'with-packages' is not built" in first and rest == ["hello"]
    assert "'with-packages' is not built" in run.get_details()["warnings"][0]["message"]


def test_the_commit_that_the_code_stands_at_is_kept(experiment: Experiment, script: Submit) -> None:
    need("git", "git")
    folder = script("print(1)")

    def git(*arguments: str, cwd: str = folder) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
        return subprocess.check_output(command, cwd=cwd, text=True, stderr=subprocess.STDOUT).strip()

    git("init", "--initial-branch", "main")
    git("remote", "add", "origin", "https://user:secret@example.org/team/code.git")
    git("add", ".")
    git("commit", "--message", "first")
    expected = {
        "azureml.git.repository_uri": "https://example.org/team/code.git",
        "mlflow.source.git.repoURL": "https://example.org/team/code.git",
        "azureml.git.branch": "main",
        "azureml.git.commit": git("rev-parse", "HEAD"),
        "azureml.git.dirty": "False",
    }
    run = experiment.submit(ScriptRunConfig(folder, script="train.py"))
    assert expected.items() <= run.get_properties().items()

    worktree = folder + "-worktree"
    git("worktree", "add", "-b", "side", worktree)
    Path(worktree, "train.py").write_text("print(2)")
    git("commit", "--all", "--message", "second", cwd=worktree)
    Path(worktree, "train.py").write_text("print(3)")
    other = experiment.submit(ScriptRunConfig(worktree, script="train.py"))
    properties = other.get_properties()
    assert properties["azureml.git.branch"] == "side" and properties["azureml.git.dirty"] == "True"
    assert properties["azureml.git.commit"] == git("rev-parse", "HEAD", cwd=worktree)
    assert properties["azureml.git.repository_uri"] == "https://example.org/team/code.git"
    for each in (run, other):
        each.wait_for_completion()


# -- where it runs, and what is kept


def test_the_script_works_in_a_copy_and_leaves_the_source_alone(
    experiment: Experiment, script: Submit, tmp_path: Path
) -> None:
    folder = script(
        "import os; open('made.txt', 'w').write('x'); open('train.py', 'a').write('# more'); os.remove('data.txt')\n"
        "os.makedirs('outputs/deep'); open('outputs/deep/model.txt', 'w').write('weights'); print(os.getcwd())\n"
    )
    Path(folder, "data.txt").write_text("input")
    before = {path.name: path.read_text() for path in Path(folder).iterdir()}
    run = experiment.submit(ScriptRunConfig(folder, script="train.py"))
    run.wait_for_completion()
    assert {path.name: path.read_text() for path in Path(folder).iterdir()} == before
    assert not printed(run).startswith(folder)
    run.download_file("outputs/deep/model.txt", tmp_path / "model.txt")
    assert (tmp_path / "model.txt").read_text() == "weights"
    assert "made.txt" not in run.get_file_names()


def test_a_change_to_the_source_after_submit_does_not_reach_the_run(experiment: Experiment, script: Submit) -> None:
    folder = script("print(open('data.txt').read())")
    Path(folder, "data.txt").write_text("as it was")
    run = experiment.submit(ScriptRunConfig(folder, script="train.py"))
    Path(folder, "data.txt").write_text("changed")
    run.wait_for_completion()
    assert printed(run) == "as it was\n"


def test_outputs_and_logs_are_kept_under_their_names(finish: Submit) -> None:
    run = finish(
        "import os\n"
        "open('outputs/model.pkl', 'wb').write(bytes(range(256)) * 4000)\n"  # more than travels inside a report
        "open('outputs/empty', 'w').close()\n"
        "os.makedirs('outputs/a/b'); open('outputs/a/b/c d.txt', 'w').write('deep')\n"
        "open('logs/train.log', 'w').write('epoch 1')\n"
        "open('elsewhere.txt', 'w').write('not kept')\n"
        "os.symlink('/etc/passwd', 'outputs/link'); os.mkfifo('outputs/pipe'); os.mkfifo('logs/pipe')\n"
        "open(b'outputs/not utf-8 \\xff', 'w').close(); open(b'logs/not utf-8 \\xff', 'w').close()\n"
    )
    assert run.get_file_names() == [
        "azureml-logs/70_driver_log.txt",
        "logs/not utf-8 %FF",
        "logs/train.log",
        "outputs/a/b/c d.txt",
        "outputs/empty",
        "outputs/model.pkl",
        "outputs/not utf-8 %FF",
        LOG,
    ]


def test_a_long_log_is_whole(finish: Submit) -> None:
    run = finish("for number in range(100_000): print('line', number)")
    assert printed(run) == "".join(f"line {number}\n" for number in range(100_000))


def test_a_log_that_is_no_text_is_kept_and_shown(
    submit: Submit, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = submit("import os; os.write(1, b'\\xff\\xfe half \\xc3'); os.write(1, b'\\r50%\\r100%\\n\\0')")
    run.wait_for_completion(show_output=True)
    assert "100%" in capsys.readouterr().out
    run.download_file(LOG, tmp_path / "log")
    assert (tmp_path / "log").read_bytes() == b"\xff\xfe half \xc3\r50%\r100%\n\0"


def test_a_script_may_remove_its_own_folder(finish: Submit) -> None:
    run = finish("import os, shutil\nshutil.rmtree(os.getcwd())\nprint('gone')")
    assert (run.get_status(), printed(run)) == ("Completed", "gone\n")


def test_the_log_has_the_new_and_the_old_name(finish: Submit) -> None:
    run = finish("import sys; print('out'); print('err', file=sys.stderr)")
    assert run.get_logs() == {LOG: "out\nerr\n", "azureml-logs/70_driver_log.txt": "out\nerr\n"}
    assert run.get_details_with_logs()["logFiles"] == run.get_logs()


def test_outputs_are_kept_of_a_script_that_fails(finish: Submit) -> None:
    run = finish("open('outputs/half.txt', 'w').write('x'); open('logs/l.txt', 'w').write('y'); raise SystemExit(4)")
    assert {"outputs/half.txt", "logs/l.txt"} <= set(run.get_file_names())


def test_what_is_printed_is_seen_within_a_second_while_the_script_runs(submit: Submit, tmp_path: Path) -> None:
    run = submit(
        "import os, sys, time\n"
        "print('no newline', end='')\n"
        "open(sys.argv[1], 'w').write(f'{time.time()}\\n')\n"
        "while not os.path.exists(sys.argv[2]): time.sleep(0.02)\n",
        arguments=[tmp_path / "at", tmp_path / "go"],
    )
    at = float(until_written(tmp_path / "at"))
    until(lambda: LOG in run.get_file_names() and printed(run) == "no newline")
    assert time.time() - at < 1.0
    run.download_file(LOG, tmp_path / "so far.txt")
    assert (tmp_path / "so far.txt").read_text() == "no newline"
    assert run.get_status() == "Running"
    (tmp_path / "go").touch()
    run.wait_for_completion()


def test_logs_stream_and_outputs_settle_while_the_script_runs(submit: Submit, tmp_path: Path) -> None:
    run = submit(
        "import os, sys, time\n"
        "log = open('logs/progress.txt', 'w', buffering=1)\n"
        "log.write('begun\\n'); open('outputs/early.txt', 'w').write('done early')\n"
        "for step in '12':\n"
        "    while not os.path.exists(sys.argv[1] + step): time.sleep(0.02)\n"
        "    log.write('step ' + step + '\\n')\n",
        arguments=[tmp_path / "go"],
    )
    until(lambda: run.get_logs().get("logs/progress.txt") == "begun\n")
    (tmp_path / "go1").touch()
    until(lambda: run.get_logs()["logs/progress.txt"] == "begun\nstep 1\n")
    until(lambda: "outputs/early.txt" in run.get_file_names())
    assert run.get_status() == "Running"
    (tmp_path / "go2").touch()
    run.wait_for_completion()
    assert run.get_logs()["logs/progress.txt"] == "begun\nstep 1\nstep 2\n"


def test_an_output_that_is_rewritten_after_it_was_sent_is_kept_as_it_ends(submit: Submit, tmp_path: Path) -> None:
    run = submit(
        "import os, sys, time\n"
        "open('outputs/model.txt', 'w').write('first')\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
        "open('outputs/model.txt', 'w').write('later')\n",
        arguments=[tmp_path / "go"],
    )
    until(lambda: "outputs/model.txt" in run.get_file_names())
    (tmp_path / "go").touch()
    run.wait_for_completion()
    run.download_file("outputs/model.txt", tmp_path / "model.txt")
    assert (tmp_path / "model.txt").read_text() == "later"


# -- how it ends


def test_a_script_that_ends_with_0_has_completed(finish: Submit) -> None:
    run = finish("print('hello')")
    details = run.get_details()
    assert (run.get_status(), run.status, details["status"]) == ("Completed",) * 3
    assert details["startTimeUtc"] <= details["endTimeUtc"] and details["endTimeUtc"].endswith("Z")
    assert "error" not in details
    assert [stage["state"] for stage in details["stages"]][-3:] == ["Running", "Finalizing", "Completed"]


def test_the_scripts_own_last_lines_are_in_the_exception(submit: Submit) -> None:
    run = submit("print('epoch 1')\nraise ValueError('the loss is NaN')")
    with pytest.raises(ActivityFailedException) as caught:
        run.wait_for_completion()
    said = caught.value.message
    assert said.startswith("Traceback (most recent call last):\n") and "ValueError: the loss is NaN\n" in said
    assert json.loads(said.split("Activity Failed:\n")[1]) == json.loads(caught.value.error_details)
    told = json.loads(caught.value.error_details)["error"]
    headline, ended = told["message"].split("\n")
    assert (told["code"], headline) == ("UserError", "User program failed with ValueError: the loss is NaN")
    assert ended == "Ended with exit code 1. Its log is user_logs/std_log.txt."
    assert run.get_details()["error"]["error"]["message"].startswith(headline)
    assert "epoch 1" in run.get_details()["error"]["error"]["lastLines"]
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Failed"


def test_an_exit_code_is_told(finish: Submit) -> None:
    run = finish("import sys; sys.exit(41)")
    error = run.get_details()["error"]["error"]
    assert (run.get_status(), error["code"], error["exitCode"]) == ("Failed", "UserError", 41)
    assert error["message"] == "User program failed with exit code 41. It printed nothing."
    assert error["innerError"] == {"code": "ExitCode"}


def test_a_signal_is_told_by_its_name(finish: Submit) -> None:
    run = finish("import os, signal; print('so far'); os.kill(os.getpid(), signal.SIGSEGV)")
    error = run.get_details()["error"]["error"]
    assert (run.get_status(), error["innerError"]["code"], error["signal"]) == ("Failed", "Signal", int(signal.SIGSEGV))
    assert "SIGSEGV" in error["message"] and "so far" in error["message"]


def test_running_out_of_memory_is_told(finish: Submit) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
    run = finish(limit + "print('allocating'); x = bytearray(1 << 30)")
    error = run.get_details()["error"]["error"]
    assert (run.get_status(), error["innerError"]["code"]) == ("Failed", "OutOfMemory")
    assert error["message"].startswith("User program failed with MemoryError\nOut of memory")


def test_a_command_that_is_not_there_is_told(experiment: Experiment, script: Submit) -> None:
    run = experiment.submit(ScriptRunConfig(script(""), command=["no-such-program", "x"]))
    run.wait_for_completion(raise_on_error=False)
    assert run.get_status() == "Failed"
    assert "no-such-program: command not found" in run.get_details()["error"]["error"]["message"]


def test_a_run_is_stopped_after_its_longest_duration(finish: Submit) -> None:
    began = time.monotonic()
    run = finish("import time\nprint('begun')\ntime.sleep(600)", max_run_duration_seconds=1)
    assert time.monotonic() - began < 30
    assert run.get_status() == "Canceled"
    assert "max_run_duration_seconds=1" in run.get_details()["error"]["error"]["message"]
    assert printed(run) == "begun\n"


def test_background_processes_end_with_their_script_however_they_detached(finish: Submit) -> None:
    nap = f"600.{uuid4().int % 10**9}"  # a number that nobody else sleeps for: pids may be a namespace's own
    run = finish(
        "import subprocess, time\n"
        f"print(subprocess.Popen(['sleep', '{nap}']).pid)\n"
        f"print(subprocess.Popen(['sleep', '{nap}'], start_new_session=True).pid)\n"
        f"orphan = 'setsid env -i sleep {nap} > /dev/null & echo $!'\n"  # a new session, no environment, no parent
        "print(subprocess.check_output(orphan, shell=True, text=True))\n"
    )
    assert run.get_status() == "Completed"
    assert len(printed(run).split()) == 3
    until(lambda: not processes_with(nap))


# -- waiting for it


def test_waiting_shows_what_azure_shows(submit: Submit, capsys: pytest.CaptureFixture[str]) -> None:
    run = submit("print('grüße aus dem Skript'); print('no end of line', end='')")
    details = run.wait_for_completion(show_output=True)
    shown = capsys.readouterr().out
    assert details == run.get_details() or details["runId"] == run.id
    lines = shown.splitlines()
    assert lines[0] == f"RunId: {run.id}"
    assert lines[1].startswith("Web View: http://127.0.0.1:")
    streaming = lines.index(f"Streaming {LOG}")
    assert lines[streaming + 1] == "=" * len(lines[streaming])
    assert lines.index("grüße aus dem Skript") > streaming
    assert lines.index("no end of line") < lines.index("Execution Summary")
    assert lines[lines.index("Execution Summary") + 2] == f"RunId: {run.id}"


def test_waiting_streams_while_the_script_runs(
    submit: Submit, tmp_path: Path, capfd: pytest.CaptureFixture[str], python: Callable[..., str]
) -> None:
    """The script goes on only when its first line has been seen by the one who waits."""
    run = submit(
        "import os, sys, time\nprint('first line')\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.02)\nprint('second line')\n",
        arguments=[tmp_path / "go"],
    )
    shown = python(
        "import sys\nfrom azureml.core import Workspace, Run\n"
        "class Screen:\n"
        "    text = ''\n"
        "    def write(self, text):\n"
        "        Screen.text += text\n"
        "        if 'first line' in Screen.text: open(sys.argv[3], 'w').close()\n"
        "        return len(text)\n"
        "    def flush(self): pass\n"
        "sys.stdout = Screen()\n"
        "run = Run.get(Workspace.get(sys.argv[1]), sys.argv[2])\n"
        "run.wait_for_completion(show_output=True)\n"
        "sys.stdout = sys.__stdout__\n"
        "print(Screen.text)\n",
        run.experiment.workspace.name, run.id, str(tmp_path / "go"),
    )  # fmt: skip
    assert shown.count("first line") == 1 and shown.count("second line") == 1
    assert shown.index("first line") < shown.index("second line") < shown.index("Execution Summary")


def test_a_failed_run_is_summed_up_before_the_exception(submit: Submit, capsys: pytest.CaptureFixture[str]) -> None:
    run = submit("raise RuntimeError('broken')")
    with pytest.raises(ActivityFailedException):
        run.wait_for_completion(show_output=True)
    shown = capsys.readouterr().out
    assert "RuntimeError: broken" in shown
    assert "Status: Failed (Ended with exit code 1)" in shown


def test_who_stops_waiting_is_told_that_the_run_goes_on(submit: Submit, workspace: Workspace) -> None:
    run = submit("import time\nprint('working')\ntime.sleep(600)")
    waiting = subprocess.Popen(
        [sys.executable, "-c", "import sys\nfrom azureml.core import Run, Workspace\n"
         "Run.get(Workspace.get(sys.argv[1]), sys.argv[2]).wait_for_completion(show_output=True)",
         workspace.name, run.id], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert waiting.stdout is not None
    while "working" not in waiting.stdout.readline():
        pass
    said = _interrupted(waiting)
    assert f"No longer waiting. Run {run.id} goes on" in said
    assert run.get_status() == "Running"
    run.cancel()
    run.wait_for_completion()


def test_the_first_status_is_one_that_notebooks_know(submit: Submit) -> None:
    run = submit("print(1)")
    assert run.get_status() in ("Queued", "Running", "Completed")
    run.wait_for_completion()


def test_details_have_what_notebooks_read(submit: Submit, workspace: Workspace) -> None:
    from urllib.request import urlopen

    run = submit("print('hello')", arguments=["--lr", 0.1], tags={"kind": "first"})
    run.wait_for_completion()
    details = run.get_details()
    assert details["runId"] == run.id and details["target"] == "local"
    assert details["properties"]["ContentSnapshotId"] == run.get_snapshot_id()
    assert details["runDefinition"]["script"] == "train.py"
    assert details["runDefinition"]["maxRunDurationSeconds"] == 2592000
    assert details["inputDatasets"] == [] and details["outputDatasets"] == []
    assert run.get_tags() == {"kind": "first"}
    with urlopen(details["logFiles"][LOG]) as answer:  # readable without further credentials
        assert answer.read() == b"hello\n"
    assert sum(stage["seconds"] for stage in details["stages"]) > 0
    assert all(stage["reason"] or stage["state"] for stage in details["stages"])


def test_the_snapshot_can_be_restored(experiment: Experiment, script: Submit, tmp_path: Path) -> None:
    import zipfile

    folder = script("print(1)")
    Path(folder, ".amlignore").write_text("*.csv\n")
    Path(folder, "big.csv").write_text("left out")
    run = experiment.submit(ScriptRunConfig(folder, script="train.py"))
    run.wait_for_completion()
    where = run.restore_snapshot(path=tmp_path / "restored")
    with zipfile.ZipFile(where) as archive:
        assert sorted(archive.namelist()) == [".amlignore", "train.py"]
        assert archive.read("train.py") == b"print(1)"


# -- inside the job


def test_the_script_finds_its_run_its_experiment_and_its_workspace(workspace: Workspace, finish: Submit) -> None:
    run = finish(
        "from azureml.core import Run, Workspace\n"
        "run = Run.get_context()\n"
        "ws = run.experiment.workspace\n"
        "print(type(run).__name__, run.id, run.experiment.name, ws.name, ws.get_details()['name'])\n"
        "print(Workspace.from_config().name, Run.get_context() is run, Run.get_submitted_run().id, run.get_status())\n"
        "run.tag('from', 'inside'); run.complete()\n"
    )
    assert printed(run) == (
        f"_SubmittedRun {run.id} trial {workspace.name} {workspace.name}\n{workspace.name} True {run.id} Running\n"
    )
    assert run.get_tags() == {"from": "inside"}
    assert run.get_status() == "Completed"


def test_a_script_may_use_its_run_as_a_block(finish: Submit) -> None:
    begin = "from azureml.core import Run\nwith Run.get_context() as run:\n    run.log('x', 1)\n"
    assert finish(begin).get_status() == "Completed"
    failed = finish(begin + "    raise ValueError('inside')")
    assert "ValueError: inside" in failed.get_details()["error"]["error"]["message"]


def test_processes_that_the_script_starts_find_the_run_too(finish: Submit) -> None:
    run = finish(
        "import subprocess, sys\n"
        'code = \'import os; os.chdir("/"); from azureml.core import Run; Run.get_context().log("from", "below")\'\n'
        "subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    assert run.get_metrics() == {"from": "below"}


def test_a_configuration_that_went_along_names_the_jobs_own_workspace(
    workspace: Workspace, experiment: Experiment, script: Submit
) -> None:
    folder = script("from azureml.core import Workspace; print(Workspace.from_config().name)")
    workspace.write_config(path=folder)
    run = experiment.submit(ScriptRunConfig(folder, script="train.py"))
    run.wait_for_completion()
    assert ".azureml/config.json" in [row[0] for row in run._client.call(
        "GET", f"{workspace._base}/snapshots/{run.get_snapshot_id()}")["files"]]  # fmt: skip
    assert printed(run) == workspace.name + "\n"


def test_a_script_can_begin_runs_of_its_own(workspace: Workspace, finish: Submit) -> None:
    """Driver scripts do what notebooks do: start a run beside theirs, submit others, cancel them."""
    run = finish(
        "from azureml.core import Experiment, Run, ScriptRunConfig\n"
        "driver = Experiment(Run.get_context().experiment.workspace, 'driven')\n"
        "with driver.start_logging(run_id='logged') as logged:\n"
        "    logged.log('x', 1); logged.tag('a', 'b'); open('outputs/o.txt', 'w').close()\n"
        "    with logged.child_run(run_id='below') as child: child.log('y', 2)\n"
        "submitted = driver.submit(ScriptRunConfig('.', command='echo hello'), run_id='submitted')\n"
        "submitted.wait_for_completion()\n"
        "endless = driver.submit(ScriptRunConfig('.', command='sleep 600'), run_id='endless')\n"
        "endless.cancel(); endless.wait_for_completion()\n"
    )
    assert run.get_status() == "Completed", run.get_details()["error"]
    runs = {each.id: each for each in Experiment(workspace, "driven").get_runs(include_children=True)}
    assert {name: each.get_status() for name, each in runs.items()} == {
        "logged": "Completed", "below": "Completed", "submitted": "Completed", "endless": "Canceled",
    }  # fmt: skip
    assert (runs["logged"].get_metrics(), runs["below"].get_metrics()) == ({"x": 1}, {"y": 2})
    assert runs["logged"].get_tags() == {"a": "b"} and "outputs/o.txt" in runs["logged"].get_file_names()
    assert runs["submitted"].parent is None


def test_a_script_that_calls_fail_has_failed_whatever_its_exit_code(finish: Submit) -> None:
    run = finish("from azureml.core import Run; Run.get_context().fail('no data', error_code='NoData')")
    assert run.get_status() == "Failed"
    error = run.get_details()["error"]["error"]
    assert (error["code"], error["message"]) == ("NoData", "no data")


def test_a_script_that_calls_complete_and_then_fails_has_failed(finish: Submit) -> None:
    run = finish("from azureml.core import Run\nrun = Run.get_context()\nrun.complete()\nraise SystemExit(2)")
    assert run.get_status() == "Failed"


# -- many at once


def test_ten_runs_share_the_slots_and_all_complete(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAPIS_MAX_RUNS", "2")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text(
        "import os, sys, time\n"
        "here, mine = sys.argv[1], os.path.join(sys.argv[1], os.environ['AZUREML_RUN_ID'])\n"
        "open(mine, 'w').close()\n"
        "print('together with', len(os.listdir(here)) - 1)\n"
        "while not os.path.exists(here + '.go'): time.sleep(0.02)\n"
        "os.remove(mine)\n"
    )
    (tmp_path / "running").mkdir()
    experiment = Experiment(Workspace.from_config(), "many")
    config = ScriptRunConfig(tmp_path / "source", script="train.py", arguments=[tmp_path / "running"])
    runs = [experiment.submit(config) for _ in range(10)]
    until(lambda: len(list((tmp_path / "running").iterdir())) == 2)
    until(lambda: "2 slots are taken (LAPIS_MAX_RUNS)" in runs[-1].get_detailed_status()["details"][0]["message"])
    waiting = runs[-1].get_detailed_status()
    assert waiting["status"] == "Queued"
    assert "ends when" in waiting["details"][0]["message"]
    (tmp_path / "running.go").touch()
    for run in runs:
        run.wait_for_completion()
    assert {run.get_status() for run in runs} == {"Completed"}
    assert {printed(run) for run in runs} <= {"together with 0\n", "together with 1\n"}


def test_an_experiment_with_one_run_does_not_wait_for_another_experiments_hundred(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAPIS_MAX_RUNS", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").mkdir()
    code = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"
    (tmp_path / "source" / "train.py").write_text(code)
    workspace = Workspace.from_config()
    config = ScriptRunConfig(tmp_path / "source", script="train.py", arguments=[tmp_path / "go"])
    crowd = [Experiment(workspace, "crowd").submit(config) for _ in range(5)]
    single = Experiment(workspace, "single").submit(config)
    (tmp_path / "go").touch()
    for run in [*crowd, single]:
        run.wait_for_completion()
    order = sorted([*crowd, single], key=lambda run: str(run.get_details()["startTimeUtc"]))
    assert order == [crowd[0], single, *crowd[1:]], "within an experiment first come, first served"


def _interrupted(process: subprocess.Popen[str]) -> str:
    """What it says on stderr when it is interrupted. Pressed again, as a person would, if once had no effect."""
    for _ in range(4):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=10)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("It cannot be interrupted.")
