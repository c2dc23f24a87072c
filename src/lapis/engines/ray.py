"""The Ray engine: agents as actors on the nodes of a Ray cluster, all of a run placed at once.

The server does not import Ray. A helper process does (ray_driver.py), in an interpreter that has the cluster's Ray
and Python; it is started when it is needed, and again when it has died.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

from lapis.domain import settings as settings_module
from lapis.domain.launch import Assignment, Work
from lapis.engines.base import Can, Handle, JobSpec, JobState, NodeHandle
from lapis.errors import ComputeTargetException
from lapis.machine import own_sources, whole_files
from lapis.machine.extras import how_to_get

CONNECT_WITHIN = 3.0  # seconds for a port to answer
READY_WITHIN = 120.0  # seconds for Ray to let the driver in
ANSWER_WITHIN = 60.0
GIVE_UP_AFTER = 180.0  # seconds without an answer before the runs of a cluster are lost for good
TRY_AGAIN_AFTER = 5.0
_PACKAGES = (
    "agent",
    "client",
    "domain",
    "engines",
    "environments",
    "files",
    "machine",
    "object_stores",
    "scoring",
    "sdk",
    "serving",
    "streaming",
    "tables",
)  # what an agent needs of Lapis
# Our sources come last: the interpreter may be another one, with packages of its own.
_DRIVER = "import sys; sys.path.append(sys.argv.pop(1)); from lapis.engines.ray_driver import main; main()"
_log = logging.getLogger("lapis.ray")


class RayEngine:
    can: ClassVar[frozenset[Can]] = frozenset({Can.MULTI_NODE})

    def __init__(
        self,
        work: str,
        address: str = "",
        server_address: str | None = None,
        namespace: str = "lapis",
        command: Sequence[str] | None = None,
    ) -> None:
        self._work = work
        self._address = address
        self._server = (server_address or "").rstrip("/")
        self._driver = DriverProcess(address, namespace, command, log=_log_file(work))
        self._silent_since: float | None = None
        self._quiet_until = 0.0
        self._bringing_up: threading.Thread | None = None
        self._sources: str | None = None

    def check(self, settings: Mapping[str, Any]) -> None:
        """The cluster answers, its Python can run an agent, and its nodes reach this server."""
        unknown = set(settings) - {"address", "server_address", "namespace"}
        if unknown:
            raise ComputeTargetException(f"The Ray engine knows no {', '.join(sorted(unknown))}.")
        try:
            about = self._driver.ask("about")
            if tuple(map(int, about["python"].split(".")[:2])) < (3, 11):
                raise ComputeTargetException(
                    f"The Ray cluster at {self._address} runs Python {about['python']}, and agents need 3.11 or later. "
                    "Start Ray with a newer Python."
                )
            url = self._server or _own_address(self._work)
            why = self._driver.ask("reach", url=url) if url else ""
        except OSError as failure:
            raise ComputeTargetException(str(failure)) from failure
        if why:
            raise ComputeTargetException(
                f"The nodes of the Ray cluster at {self._address} do not reach this server at {url} ({why}). Let it "
                "listen where they do (LAPIS_HOST, or `lapis serve --host`), and name that address as server_address."
            )

    def lacks(self, shape: Mapping[str, Any]) -> str:
        return ""  # Ray's autoscaler may bring up what is not there yet

    def start_node(self, node_id: str, number: int, shape: Mapping[str, Any]) -> NodeHandle:
        """A right to a node: which machine it is, Ray says when the run is placed."""
        return {"name": node_id, "cores": int(shape["cores"]), "gpus": int(shape["gpus"])}

    def stop_node(self, node: NodeHandle) -> None:
        """Ray lets machines go by itself."""

    def launch(self, job: JobSpec) -> Handle:
        shapes = [{"cores": node["cores"], "gpus": node["gpus"]} for node in job.nodes] or [{"cores": 1, "gpus": 0}]
        assignment = Assignment(job.work.elsewhere(self._server)).to_json()  # where, each node says for itself
        attempt = job.work.launch.attempt if isinstance(job.work, Work) else 0
        names = self._driver.ask(
            "launch", job=job.id, attempt=attempt, nonce=uuid.uuid4().hex[:8], assignment=assignment,
            shapes=shapes, sources=self._packed_sources(),
        )  # fmt: skip
        return {"job": job.id, "agents": names}

    def poll(self, handles: Sequence[Handle]) -> list[JobState]:
        """While Ray does not answer, jobs count as alive: the agents can do without it for a while."""
        if not handles:
            return []
        if self._driver.ready:
            states = self._listen("poll", jobs=[handle.get("agents", []) for handle in handles])
            if states is not None:
                return [JobState(state) for state in states]
        else:
            self._bring_up()
        silent = time.monotonic() - self._silent_since if self._silent_since is not None else 0.0
        return [JobState.GONE if silent > GIVE_UP_AFTER else JobState.ALIVE] * len(handles)

    def _bring_up(self) -> None:
        """In a thread of its own: Ray may take its time, and the runs of other targets need not wait for it."""
        under_way = self._bringing_up is not None and self._bringing_up.is_alive()
        if not under_way and time.monotonic() >= self._quiet_until:
            self._bringing_up = threading.Thread(target=self._listen, args=("about",), daemon=True)
            self._bringing_up.start()

    def _listen(self, do: str, **what: Any) -> Any:
        """What the driver says; None, and note since when, if it says nothing."""
        try:
            said = self._driver.ask(do, **what)
        except OSError as failure:
            if self._silent_since is None:
                _log.error("%s", failure)
                self._silent_since = time.monotonic()
            self._quiet_until = time.monotonic() + TRY_AGAIN_AFTER
            return None
        self._silent_since = None
        return said

    def stop(self, handle: Handle, *, hard: bool = False) -> None:
        try:
            self._driver.ask("stop", names=handle.get("agents", []), hard=hard)
        except OSError as failure:
            _log.warning("A run could not be stopped: %s", failure)

    def explain(self, handle: Handle) -> str:
        try:
            return str(self._driver.ask("explain", names=handle.get("agents", [])))
        except OSError as failure:
            return str(failure)

    def warm(self) -> None:
        pass

    def close(self) -> None:
        self._driver.close()

    def left(self) -> dict[str, Handle]:
        found: dict[str, list[str]] = self._driver.ask("left")
        return {job: {"job": job, "agents": names} for job, names in found.items()}

    def forget(self, job_id: str) -> None:
        try:
            self._driver.ask("forget", job=job_id)
        except OSError as failure:
            _log.warning("What run %s had in Ray could not be removed: %s", job_id, failure)

    def _packed_sources(self) -> str:
        if self._sources is None or not os.path.exists(self._sources):
            self._sources = pack_sources(os.path.join(self._work, "ray"))
        return self._sources


class DriverProcess:
    """The helper process. Every failure of it is an OSError that says what to do."""

    def __init__(self, address: str, namespace: str, command: Sequence[str] | None, log: str) -> None:
        self._address = address
        self._namespace = namespace
        self._command = command
        self._log = log
        self._let_in = False
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._buffer = b""
        self._asked = 0

    @property
    def ready(self) -> bool:
        """Whether a question would be answered soon."""
        process = self._process
        return self._let_in and process is not None and process.poll() is None

    def ask(self, do: str, **what: Any) -> Any:
        """One question, one answer."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            self._asked += 1
            question = json.dumps({"id": self._asked, "do": do, "with": what})
            assert self._process is not None and self._process.stdin is not None
            try:
                self._process.stdin.write(question.encode() + b"\n")
                answer = self._answer(ANSWER_WITHIN)
            except (BrokenPipeError, TimeoutError, EOFError) as failure:
                self._end()
                raise OSError(f"Ray at {self._address} did not answer ({failure}).") from failure
        if "error" in answer:
            raise OSError(f"Ray at {self._address} refused: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self) -> None:
        self._end()
        command = list(self._command or [*_interpreter(), self._address, self._namespace])
        _check_port(self._address)
        os.makedirs(os.path.dirname(self._log), exist_ok=True)
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                start_new_session=True,  # Ctrl-C in the server's terminal passes it by
            )
        try:
            first = self._answer(READY_WITHIN)
        except (TimeoutError, EOFError) as failure:
            self._end()
            raise OSError(
                f"What answers at {self._address} let nobody in within {READY_WITHIN:.0f} s ({failure}): is it a Ray "
                f"cluster? {self._log} tells more."
            ) from failure
        if "fatal" in first:
            self._end()
            raise OSError(_not_let_in(self._address, first["fatal"], command[0]))
        self._let_in = True

    def _answer(self, within: float) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        deadline = time.monotonic() + within
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError(f"nothing within {within:.0f} s")
            fresh = os.read(self._process.stdout.fileno(), 1 << 16)
            if not fresh:
                raise EOFError("the process that speaks to Ray ended")
            self._buffer += fresh
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _end(self) -> None:
        process, self._process, self._buffer, self._let_in = self._process, None, b"", False
        if process is None:
            return
        process.kill()  # it holds nothing: runs live in Ray
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def pack_sources(folder: str) -> str:
    """A zip file with what an agent needs of Lapis, named by its content."""
    root = own_sources.folder()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _source_files(root):
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the same files are the same bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            with open(os.path.join(root, path), "rb") as file:
                archive.writestr(entry, file.read())
    content = packed.getvalue()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"sources-{hashlib.sha256(content).hexdigest()[:16]}.zip")
    if not os.path.exists(path):
        whole_files.write(path, content)
    return path


def _source_files(root: str) -> list[str]:
    tops = ["azureml", *(os.path.join("lapis", package) for package in _PACKAGES)]
    found = [os.path.join("lapis", name) for name in os.listdir(os.path.join(root, "lapis"))]
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    kept = [path for path in found if "__pycache__" not in path and os.path.isfile(os.path.join(root, path))]
    return sorted(kept)


def _interpreter() -> list[str]:
    """An interpreter that has Ray, up to where the driver's arguments begin."""
    chosen = settings_module.load().ray_python
    if chosen is None and find_spec("ray") is None:
        raise OSError(
            f"Engine 'ray' needs the package 'ray' where the server runs: {how_to_get('ray')}. Or name an interpreter "
            "that has it with LAPIS_RAY_PYTHON."
        )
    if chosen is not None and not os.access(chosen, os.X_OK):
        raise OSError(f"LAPIS_RAY_PYTHON={chosen!r} is no interpreter that can be run.")
    return [chosen or sys.executable, "-c", _DRIVER, own_sources.folder()]


def _environment() -> dict[str, str]:
    ours = {key: value for key, value in os.environ.items() if key not in ("LAPIS_TOKEN", "PYTHONPATH", "PYTHONHOME")}
    return {**ours, "RAY_LOG_TO_DRIVER": "0", "PYTHONUNBUFFERED": "1"}


def _check_port(address: str) -> None:
    """Raise soon if nobody is there: Ray itself would try for long."""
    parts = urllib.parse.urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or parts.scheme not in ("", "ray"):
        raise OSError(f"{address!r} is no address of a Ray cluster. Such are 10.0.0.5:6379 and ray://10.0.0.5:10001.")
    try:
        socket.create_connection((host, port), CONNECT_WITHIN).close()
    except OSError as error:
        raise OSError(
            f"No Ray cluster answers at {address} ({error}). Is it up (`ray status`), and is this its address? "
            "`ray start --head` says them: 6379 on a machine of the cluster, ray://...:10001 from elsewhere."
        ) from error


def _not_let_in(address: str, why: str, python: str) -> str:
    if re.search(r"version", why, re.IGNORECASE):
        return (
            f"The Ray cluster at {address} has another version of Ray or Python than {python}: {why} Point "
            "LAPIS_RAY_PYTHON to an interpreter with the cluster's versions."
        )
    if "ModuleNotFoundError" in why:
        return f"{python} has no Ray ({why}): pip install 'ray[default]' there, or point LAPIS_RAY_PYTHON elsewhere."
    return (
        f"The Ray cluster at {address} let nobody in: {why} From a machine that is not one of its nodes, use the "
        "address of its client server, ray://...:10001."
    )


def _own_address(work: str) -> str:
    """Where the server that this engine belongs to listens; empty if there is none."""
    try:
        with open(os.path.join(os.path.dirname(work), "server.json")) as file:
            return str(json.load(file)["url"])
    except (OSError, ValueError, KeyError):
        return ""


def _log_file(work: str) -> str:
    return os.path.join(work, "ray", "driver.log")
