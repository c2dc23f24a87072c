"""The systems compared with: an environment of their own, made on demand, and their work done in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGES = ("mlflow==3.17.2", "submitit==1.5.4")
_BARE = ("uvicorn", "starlette", "httptools", "uvloop", "onnxruntime", "onnx")
RAY = ("ray[client,default,tune]==2.60.0", "uv")
SERVING = ("azureml-inference-server-http==1.5.1", *_BARE, "orjson")  # as the environments of no-code services have it
_PLACE = Path(__file__).resolve().parent.parent / ".venv-peers"
_SERVING_PLACE = _PLACE.with_name(".venv-peers-serving")
_EMPTY_STORE = _PLACE / "mlflow-empty.db"
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "MLFLOW_ALLOW_FILE_STORE": "true",  # it refuses to open that store otherwise
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # or it starts seven more processes
    "GIT_PYTHON_REFRESH": "quiet",
}


def interpreter() -> str | None:
    """The Python that has the peers; None, with a line that says why, if it cannot be made."""
    return made(_PLACE, PACKAGES, lambda python: _work(python, "make_store", str(_EMPTY_STORE), folder=str(_PLACE)))


def serving_interpreter() -> str | None:
    """The Python that has Azure's scoring server and what the bare one needs; None if it cannot be made."""
    return made(Path(os.environ.get("BENCH_SERVING_ENV") or _SERVING_PLACE), SERVING)


def ray_interpreter() -> str | None:
    """The Python that has Ray: its jobs, its client and Tune; None if it cannot be made."""
    return made(_PLACE.with_name(".venv-ray"), RAY)


def made(place: Path, packages: tuple[str, ...], then: Callable[[str], object] = str) -> str | None:
    """An environment with these packages, made once."""
    python, ready = place / "bin" / "python", place / "ready.txt"
    if ready.exists() and ready.read_text() == "\n".join(packages):
        return str(python)
    print(f"Making {place.name} with {', '.join(packages)} (once, some minutes) ...", file=sys.stderr, flush=True)
    try:
        _run([sys.executable, "-m", "venv", "--clear", str(place)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        then(str(python))
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or str(error)).strip().splitlines()[-1:]
        print(f"Without peers: {place.name} could not be made: {''.join(last)}", file=sys.stderr)
        return None
    ready.write_text("\n".join(packages))
    return str(python)


def ask(python: str, what: str, *arguments: object) -> dict[str, Any]:
    """The samples of one function of peer_work.py, in a folder of its own that has an empty MLflow store."""
    folder = tempfile.mkdtemp(prefix="peer-")
    empty_store(folder)
    return _work(python, what, *arguments, folder=folder)


def environment(folder: str) -> dict[str, str]:
    """For a command line of the peers in `folder`, with MLflow's SQLite store there."""
    path = f"{_PLACE / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    store = f"sqlite:///{folder}/mlflow.db"
    return {**os.environ, **_QUIET, "PATH": path, "MLFLOW_TRACKING_URI": store, "PWD": folder}


def empty_store(folder: str) -> None:
    shutil.copy(_EMPTY_STORE, os.path.join(folder, "mlflow.db"))


def _work(python: str, what: str, *arguments: object, folder: str) -> dict[str, Any]:
    script = str(Path(__file__).with_name("peer_work.py"))
    done = _run([python, script, what, *map(str, arguments)], cwd=folder, env=environment(folder))
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _run(command: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True, **more)
