"""From each release to this one: its home is served, its client works, and its runs under way come to their end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Dataset, Environment, Experiment, Model, Run, Webservice, Workspace
from lapis.client import local_server
from lapis.testing import Home, until
from lapis.upkeep.restore import restore
from tests.releases import SAVED, backup_of, expected_of, source_of

SESSION = """
import json, os, sys
from azureml.core import Dataset, Environment, Experiment, Model, Run, ScriptRunConfig, Workspace
import lapis
assert lapis.__file__.startswith(sys.argv[1]), lapis.__file__
workspace = Workspace.from_config()
os.makedirs("code", exist_ok=True)
open("code/train.py", "w").write('''
import os
from azureml.core import Run
run = Run.get_context()
for loss in (0.5, 0.25): run.log("loss", loss)
os.makedirs("outputs", exist_ok=True)
open("outputs/model.txt", "w").write("3")
print("trained")
''')
experiment = Experiment(workspace, "old-client")
run = experiment.submit(ScriptRunConfig("code", "train.py"), tags={"a": "b"})
details = run.wait_for_completion(show_output=True)
assert details["status"] == "Completed" and run.get_metrics() == {"loss": [0.5, 0.25]}, details
run.download_file("outputs/model.txt", "got.txt")
assert open("got.txt").read() == "3"
run.tag("seen", "yes")
model = run.register_model("old", "outputs/model.txt")
assert Model(workspace, "old").version == model.version
model.download("down", exist_ok=True)
interactive = experiment.start_logging()
child = interactive.child_run("c")
child.log("x", 1)
child.complete()
interactive.log_list("many", [1, 2, 3])
interactive.upload_file("outputs/got.txt", "got.txt")
interactive.complete()
assert interactive.get_status() == "Completed" and interactive.get_metrics() == {"many": [1, 2, 3]}
failed = experiment.submit(ScriptRunConfig("code", "train.py", arguments=["--no-such"]))
failed.cancel()
store = workspace.get_default_datastore()
store.upload_files(["got.txt"], show_progress=False)
data = Dataset.File.from_files((store, "got.txt")).register(workspace, "old-data")
assert Dataset.get_by_name(workspace, "old-data").id == data.id
Environment("old-env").register(workspace)
assert Environment.get(workspace, "old-env").name == "old-env"
assert {each.id for each in experiment.get_runs()} >= {run.id, interactive.id}
interactive.delete() if hasattr(interactive, "delete") else None
print(json.dumps({"run": run.id}))
"""


@pytest.fixture(params=SAVED, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def restored(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home of that release, under a server of this one."""
    home = Home(tmp_path / "home")
    restore(str(backup_of(release, tmp_path)), str(home.path))
    monkeypatch.setenv("LAPIS_HOME", str(home.path))
    yield home
    home.end()


def test_the_home_of_each_release_is_served_with_all_that_was_in_it(
    release: Path, restored: Home, tmp_path: Path
) -> None:
    expected = expected_of(release)
    workspace = Workspace.from_config()
    run = Run.get(workspace, expected["run"])
    assert run.get_status() == "Completed" and run.get_metrics() == expected["metrics"]
    assert (run.tags, sorted(run.get_file_names())) == (expected["tags"], expected["files"])
    run.download_file("outputs/model.txt", str(tmp_path / "model.txt"))
    assert (tmp_path / "model.txt").read_text() == "3"
    assert run.get_logs()["user_logs/std_log.txt"].startswith("hello from the script")
    with zipfile.ZipFile(run.restore_snapshot(path=str(tmp_path / "code"))) as snapshot:
        assert b"log_row" in snapshot.read("train.py")
    interactive = Run.get(workspace, expected["interactive"])
    assert interactive.get_metrics() == {"accuracy": 0.75} and len(list(interactive.get_children())) == 1
    model = Model(workspace, "kept-model")
    assert model.run_id == run.id and model.tags == {"of": "run"}
    assert len(Dataset.get_by_name(workspace, "kept-data").to_path()) == 1
    assert Environment.get(workspace, "kept-environment").name == "kept-environment"
    assert [service.name for service in Webservice.list(workspace)] == ["kept-service"]
    assert Experiment(workspace, "kept").start_logging().id  # and it goes on


def in_release(release: Path, tmp_path: Path, home: Home) -> tuple[Path, dict[str, str]]:
    """Its packages, and what makes a Python use them and this home."""
    source = source_of(release, tmp_path / "release")
    return source, {**os.environ, "PYTHONPATH": str(source), "LAPIS_HOME": str(home.path), "LAPIS_PYTHON": ""}


@pytest.mark.full
def test_the_client_of_each_release_works_with_this_server(release: Path, home: Home, tmp_path: Path) -> None:
    home.start()
    pid = home.server_pid
    source, environment = in_release(release, tmp_path, home)
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(source)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert home.server_pid == pid
    run = Run.get(Workspace.from_config(), json.loads(done.stdout.splitlines()[-1])["run"])
    assert run.get_metrics() == {"loss": [0.5, 0.25]} and run.tags == {"a": "b", "seen": "yes"}


@pytest.mark.full
def test_runs_under_way_survive_the_upgrade_with_the_agents_that_they_have(
    release: Path, home: Home, script: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    code = (
        "import os, time\nfrom azureml.core import Run\nrun = Run.get_context()\nrun.log('before', 1)\n"
        f"print('begun', flush=True)\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
        "run.log('after', 2)\nos.makedirs('outputs', exist_ok=True)\nopen('outputs/x', 'w').write('kept')\n"
    )
    submit = (
        "import sys\nfrom azureml.core import Experiment, ScriptRunConfig, Workspace\n"
        "run = Experiment(Workspace.from_config(), 'e').submit(ScriptRunConfig(sys.argv[1], 'train.py'))\nprint(run.id)"
    )
    source, environment = in_release(release, tmp_path, home)
    done = subprocess.run(
        [sys.executable, "-c", submit, script(code)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    old = home.server_pid
    assert [os.path.realpath(path) for path in home.path.glob("sources/*/lapis")] == [str(source / "lapis")]
    run_id = done.stdout.split()[-1]
    log = home.path / "work" / run_id / "std_log.txt"
    until(lambda: log.exists() and "begun" in log.read_text())
    monkeypatch.setattr(local_server, "VERSION", "99.0.0")  # we are the newer release
    run = Run.get(Workspace.from_config(), run_id)
    assert home.server_pid not in (None, old)
    gate.touch()
    assert run.wait_for_completion()["status"] == "Completed"
    assert run.get_metrics() == {"before": 1, "after": 2}
    run.download_file("outputs/x", str(tmp_path / "x"))
    assert (tmp_path / "x").read_text() == "kept"


def test_every_release_is_saved_whole() -> None:
    assert SAVED
    held: list[Any] = [sorted(path.name for path in release.iterdir()) for release in SAVED]
    assert held == [["expected.json", "home.tar.xz", "source.tar.xz"]] * len(SAVED)
