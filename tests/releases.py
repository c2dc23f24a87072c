"""What is kept of each release for tests of upgrades: its source, and a home with something of every kind in it.

`.venv/bin/python -m tests.releases` saves this release in tests/data/releases/<version>/. Do so when it is released,
and never again for that version. No path and no name of the machine stays in it; its token and keys open nothing.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import socket
import sqlite3
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from lapis.client import local_server
from lapis.testing import Home, running_server, until
from lapis.upkeep.backup import back_up
from lapis.version import VERSION

ROOT = Path(__file__).parents[1]
SAVED = sorted(path for path in (ROOT / "tests" / "data" / "releases").iterdir() if path.is_dir())
SOURCE, HOME, EXPECTED = "source.tar.xz", "home.tar.xz", "expected.json"

TRAIN = """
import os
from azureml.core import Run
run = Run.get_context()
for loss in (0.5, 0.25, 0.125): run.log("loss", loss)
run.log_row("curve", x=1, y=2)
run.tag("colour", "blue")
print("hello from the script")
os.makedirs("outputs", exist_ok=True)
open("outputs/model.txt", "w").write("3")
"""
SCORE = "def init(): pass\ndef run(data): return data\n"


def source_of(release: Path, folder: Path) -> Path:
    """The release's packages, laid out for PYTHONPATH."""
    with tarfile.open(release / SOURCE) as tar:
        tar.extractall(folder, filter="data")
    return folder


def backup_of(release: Path, folder: Path) -> Path:
    """The release's home, as a backup that can be restored."""
    path = folder / "home.tar"
    path.write_bytes(lzma.decompress((release / HOME).read_bytes()))
    return path


def expected_of(release: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((release / EXPECTED).read_text())
    return found


def save() -> None:
    target = ROOT / "tests" / "data" / "releases" / VERSION
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target / SOURCE, "w:xz", preset=9) as tar:
        for path in sorted((ROOT / "src").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                member = tarfile.TarInfo(str(path.relative_to(ROOT / "src")))
                member.size = path.stat().st_size
                with open(path, "rb") as file:
                    tar.addfile(member, file)
    with tempfile.TemporaryDirectory() as scratch, running_server() as home:
        expected = _fill(Path(scratch))
        about = local_server.running(home.settings)
        assert about is not None and local_server.stop(home.settings, about)
        _forget_this_machine(home, scratch)
        back_up(str(home.path), f"{scratch}/home.tar")
        (target / HOME).write_bytes(lzma.compress(Path(scratch, "home.tar").read_bytes(), preset=9))
    (target / EXPECTED).write_text(json.dumps(expected, indent=2) + "\n")
    for path in sorted(target.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


def _fill(scratch: Path) -> dict[str, Any]:
    from azureml.core import Dataset, Environment, Experiment, Model, ScriptRunConfig, Workspace
    from azureml.core.model import InferenceConfig

    workspace = Workspace.from_config()
    code = scratch / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "score.py").write_text(SCORE)
    experiment = Experiment(workspace, "kept")
    run = experiment.submit(ScriptRunConfig(str(code), "train.py"), tags={"team": "a"})
    run.wait_for_completion()
    model = run.register_model("kept-model", "outputs/model.txt", tags={"of": "run"})
    interactive = experiment.start_logging(snapshot_directory=None)
    interactive.child_run("child").complete()
    interactive.log("accuracy", 0.75)
    interactive.complete()
    (scratch / "data.csv").write_text("a,b\n1,2\n")
    store = workspace.get_default_datastore()
    store.upload_files([str(scratch / "data.csv")], show_progress=False)
    Dataset.File.from_files((store, "data.csv")).register(workspace, "kept-data")
    Environment("kept-environment").register(workspace)
    service = Model.deploy(workspace, "kept-service", [model], InferenceConfig("score.py", source_directory=str(code)))
    service.wait_for_deployment()
    keys = service.get_keys() if service.auth_enabled else []
    return {
        "run": run.id,
        "metrics": run.get_metrics(),
        "tags": run.tags,
        "files": sorted(run.get_file_names()),
        "interactive": interactive.id,
        "keys": list(keys),
    }


def _forget_this_machine(home: Home, scratch: str) -> None:
    """Paths and names of this machine become others, everywhere in the database."""
    for path in home.path.glob("work"):
        until(lambda path=path: shutil.rmtree(path, ignore_errors=True) is None)  # type: ignore[misc]
    instead = {
        str(home.path): "/home/somebody/.lapis",
        scratch: "/home/somebody/code",
        str(ROOT): "/home/somebody/lapis",
        os.path.realpath(sys.executable): "/usr/bin/python3",
        sys.base_prefix: "/usr",
        f'"host": "{socket.gethostname()}"': '"host": "somewhere"',
        f'"host":"{socket.gethostname()}"': '"host":"somewhere"',
    }
    with closing(sqlite3.connect(home.path / "lapis.db")) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for column in [row[1] for row in database.execute(f'PRAGMA table_info("{table}")') if row[2] == "TEXT"]:
                for old, new in instead.items():
                    database.execute(f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?)', (old, new))
        database.commit()
        database.execute("VACUUM")
    for name in ("interactive", "environments", "live"):
        shutil.rmtree(home.path / name, ignore_errors=True)


if __name__ == "__main__":
    save()
