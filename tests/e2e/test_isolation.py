"""Code of others runs apart from what is the server's: a job, a model and a package try to get at it."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, Model, Workspace
from azureml.core.model import InferenceConfig
from azureml.exceptions import UserErrorException
from lapis.domain.settings import home as home_folder
from lapis.environments.resolve import resolve
from lapis.environments.values import Recipe
from lapis.machine import apart
from lapis.machine.interpreters import interpreters
from lapis.server.store.sealed import Sealer
from lapis.testing import Home
from lapis.testing.waiting import until_written

pytestmark = pytest.mark.skipif(
    apart.level(home_folder()).kind == apart.SHARED, reason="this machine cannot run code apart: lapis status says why"
)

# Tries everything, and prints what it got hold of. Given: LAPIS_HOME, the server's process, another run's folder.
ATTACK = """
import ctypes, json, os, signal, sys

home, server, other = sys.argv[1], int(sys.argv[2]), sys.argv[3]
got = {}

def tried(name, attempt):
    try:
        got[name] = repr(attempt())[:80]
    except (OSError, ValueError, KeyError) as error:
        pass

def read(path):
    with open(path, "rb") as file:
        return file.read(64)

def memory():
    with open(f"/proc/{server}/maps") as maps:
        start = int(maps.readline().split("-")[0], 16)
    with open(f"/proc/{server}/mem", "rb") as file:
        file.seek(start)
        return file.read(16)

def traced():
    if ctypes.CDLL(None, use_errno=True).ptrace(16, server, 0, 0):  # PTRACE_ATTACH
        raise OSError("not allowed")
    ctypes.CDLL(None).ptrace(17, server, 0, 0)
    return "attached"

def through_process(path):
    return read(f"/proc/{server}/root{path}")

mine = os.environ.get("LAPIS_RUN_FOLDER") or os.path.dirname(os.getcwd())
for name in ("token", "secrets.key", "lapis.db", "lapis.db-wal", "server.log", "server.json"):
    tried(name, lambda: read(os.path.join(home, name)))
    tried(f"{name} through the server's root", lambda: through_process(os.path.join(home, name)))
for name in ("job.json", "agent.json", "crew.json"):
    tried(f"own {name}", lambda: read(os.path.join(mine, name)))
tried("another run's folder", lambda: os.listdir(other))
tried("another run's job", lambda: read(os.path.join(other, "job.json")))
tried("something left in the home", lambda: open(os.path.join(home, "left"), "w"))
tried("environ", lambda: read(f"/proc/{server}/environ"))
tried("memory", memory)
tried("ptrace", traced)
tried("kill", lambda: os.kill(server, 0))
tried("blobs", lambda: os.listdir(os.path.join(home, "blobs")))
tried("unmount", lambda: None if ctypes.CDLL(None).umount2(home.encode(), 2) == 0 else int("no"))
tried("root", lambda: os.setuid(0) if os.getuid() else int("no"))
tried("our sources", lambda: os.open(os.path.dirname(sys.argv[4]), os.O_TMPFILE | os.O_WRONLY))  # leaves nothing
"""
JOB = ATTACK + "\nprint(json.dumps(got))\n"


@pytest.fixture
def other_run(experiment: Experiment, submit: Any, tmp_path: Path) -> Iterator[Any]:
    """Another run, which is at work meanwhile."""
    begun = tmp_path / "begun"
    run = submit("import sys, time\nprint('up', file=open(sys.argv[1], 'w'))\ntime.sleep(600)", arguments=[begun])
    until_written(begun)
    yield run
    run.cancel()
    run.wait_for_completion(raise_on_error=False)


def printed(run: Any) -> str:
    text: str = run.get_logs()["user_logs/std_log.txt"]
    return text


def spoils(home: Home, run_id: str) -> list[str]:
    """What an attack is told. All that it tries to read is there."""
    Sealer(str(home.path)).seal({})  # makes the key
    about = json.loads((home.path / "server.json").read_text())
    assert (home.path / "token").exists() and (home.path / "secrets.key").exists()
    assert (home.path / "work" / run_id / "job.json").exists()
    return [str(home.path), str(about["pid"]), str(home.path / "work" / run_id), apart.__file__]


def test_a_job_gets_at_nothing_of_the_servers_nor_of_another_run(
    on_shared_server: Home, experiment: Experiment, finish: Any, other_run: Any
) -> None:
    run = finish(JOB, arguments=spoils(on_shared_server, other_run.id))
    assert json.loads(printed(run).splitlines()[-1]) == {}
    assert not os.path.exists(on_shared_server.path / "left")


SCORE = """
import os, pickle

def init():
    global got
    with open(os.path.join(os.environ["AZUREML_MODEL_DIR"], "model.pkl"), "rb") as file:
        got = pickle.load(file)

def run(data):
    return got
"""


class Evil:
    """What a pickle runs when it is loaded."""

    def __init__(self, spoils: list[str]) -> None:
        self._spoils = spoils

    def __reduce__(self) -> Any:
        code = f"import sys; sys.argv = ['model', *{self._spoils!r}]\n{ATTACK}"
        return eval, (f"(lambda space: exec({code!r}, space) or space['got'])({{}})",)


def test_a_model_that_is_a_pickle_gets_at_nothing_of_the_servers(
    on_shared_server: Home, workspace: Workspace, tmp_path: Path, other_run: Any
) -> None:
    (tmp_path / "score").mkdir()
    (tmp_path / "score" / "score.py").write_text(SCORE)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Evil(spoils(on_shared_server, other_run.id))))
    model = Model.register(workspace, str(tmp_path / "model.pkl"), "evil")
    config = InferenceConfig("score.py", source_directory=str(tmp_path / "score"))
    service = Model.deploy(workspace, "evil", [model], config)
    try:
        service.wait_for_deployment()
        assert service.run("{}") == {}
    finally:
        service.delete()


BACKEND = """
import json, sys

sys.argv = ["setup.py", *{spoils!r}]
{attack}
with open({told!r}, "w") as file:
    print(json.dumps(got), file=file)


def get_requires_for_build_wheel(settings=None):
    return []


def prepare_metadata_for_build_wheel(folder, settings=None):
    raise SystemExit("seen enough")
"""


def test_a_package_that_is_built_gets_at_nothing_of_the_servers(
    on_shared_server: Home, tmp_path: Path, other_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, wheels = tmp_path / "told.json", tmp_path / "wheels"
    monkeypatch.setenv("LAPIS_OPEN_FOLDERS", str(tmp_path))  # for what it tells
    wheels.mkdir()
    needs = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    given = spoils(on_shared_server, other_run.id)
    files = {
        "pyproject.toml": f"{needs}[project]\nname = 'evil'\ndynamic = ['version', 'dependencies']\n",
        "backend.py": BACKEND.format(spoils=given, attack=ATTACK, told=str(told)),
    }
    with tarfile.open(wheels / "evil-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"evil-1.0/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    python = next(each for each in interpreters() if each.version.startswith("3.1"))
    recipe = Recipe(python.version, ("evil",), pip_options=("--no-index", f"--find-links {wheels}"))
    with pytest.raises(UserErrorException):
        resolve(recipe, python, lambda line: None, root=str(on_shared_server.path / "environments"))
    assert json.loads(told.read_text()) == {}


def test_status_says_how_far_apart_code_runs(on_shared_server: Home) -> None:
    on_shared_server.start()
    said = subprocess.run([sys.executable, "-m", "lapis.cli", "status"], capture_output=True, text=True, timeout=60)
    assert " ".join(apart.said(apart.level(str(on_shared_server.path))).split()[:5]) in " ".join(said.stdout.split())


def test_a_script_may_open_its_own_stdout_and_stderr_by_name(finish: Any) -> None:
    """As shells do: `echo trouble >> /dev/stderr`."""
    run = finish(
        "import os\nopen('/dev/stdout', 'a').write('out by name\\n')\nos.system('echo trouble >> /dev/stderr')\n"
    )
    said = run.get_logs()["user_logs/std_log.txt"]
    assert "out by name" in said and "trouble" in said
