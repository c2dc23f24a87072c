"""The environment of the local server: made once, when a server is first needed, for all notebooks of the user.

It lies in LAPIS_HOME and holds what the server needs, in the exact versions that come with this release. Nothing of it
enters the interpreter that asks, and nothing of that interpreter is on its path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, Sequence

from lapis.client import server_requirements
from lapis.errors import Unavailable, UserErrorException
from lapis.machine import commands, uv, whole_files
from lapis.machine.commands import Tell
from lapis.machine.extras import SERVER_ENVIRONMENTS
from lapis.machine.interpreters import Interpreter, interpreters

# The newest Python that the pinned versions are known to have wheels for. A newer one is taken if it is all there is.
_NEWEST_KNOWN = (3, 13)
_OLDEST = ".".join(map(str, server_requirements.OLDEST_PYTHON))
_WORTH_TELLING = ("Resolved", "Prepared", "Downloading", "Building", "Installed")


@dataclass(frozen=True)
class Plan:
    """Which environment is wanted, and where its packages may come from."""

    home: str
    extras: tuple[str, ...] = ()
    wheels: str = ""  # a folder that takes the place of the package index

    @property
    def requirements(self) -> str:
        beside = [line for extra in self.extras for line in server_requirements.EXTRAS[extra]]
        return server_requirements.pinned() + "".join(line + "\n" for line in beside)

    @property
    def folder(self) -> str:
        """Another list is another environment: a server that still runs keeps the one it has."""
        name = hashlib.sha256(self.requirements.encode()).hexdigest()[:16]
        return os.path.join(root(self.home), name)

    @property
    def python(self) -> str:
        return os.path.join(self.folder, "bin", "python")

    @property
    def ready(self) -> bool:
        """A half-made one has no mark; of one whose base was removed the interpreter is a link to nowhere."""
        return os.path.exists(_mark(self.folder)) and os.access(self.python, os.X_OK)


Make = Callable[[Plan, Tell, int], None]


def plan(home: str, more: Sequence[str] = (), wheels: str = "") -> Plan:
    """The environment that this user's server has: with the extras asked for before, and `more`."""
    unknown = sorted(set(more) - set(server_requirements.EXTRAS))
    if unknown:
        known = ", ".join(server_requirements.EXTRAS)
        raise UserErrorException(f"The server has no extra named '{unknown[0]}'. Known: {known}.")
    if wheels and not os.path.isdir(wheels):
        raise UserErrorException(f"There is no folder '{wheels}' to take wheels from.")
    return Plan(home, tuple(sorted({*_extras(home), *more})), os.path.abspath(wheels) if wheels else "")


def ensure(wanted: Plan, tell: Tell, make: Make | None = None) -> str:
    """The interpreter of that environment, which is made if it is not there. Of several that ask at once one does."""
    if wanted.ready:
        return wanted.python
    os.makedirs(root(wanted.home), mode=0o700, exist_ok=True)
    with _alone(wanted.folder + ".lock", tell) as lock:
        if not wanted.ready:
            shutil.rmtree(wanted.folder, ignore_errors=True)
            (make or _make)(wanted, tell, lock)
            whole_files.write(_mark(wanted.folder), b"")
    whole_files.write(_extras_file(wanted.home), "".join(f"{each}\n" for each in wanted.extras).encode())
    return wanted.python


def say(line: str) -> None:
    """Progress goes where it hurts no output: a notebook shows it below the cell."""
    print(f"Lapis: {line}", file=sys.stderr, flush=True)


def root(home: str) -> str:
    """Where the environments of this user's servers lie."""
    return os.path.join(home, SERVER_ENVIRONMENTS)


def _mark(folder: str) -> str:
    return os.path.join(folder, "ready")


def _extras_file(home: str) -> str:
    return os.path.join(root(home), "extras.txt")


def _extras(home: str) -> list[str]:
    try:
        with open(_extras_file(home), encoding="utf-8") as file:
            return [name for name in file.read().split() if name in server_requirements.EXTRAS]
    except OSError:
        return []


@contextlib.contextmanager
def _alone(path: str, tell: Tell) -> Iterator[int]:
    """Hold the lock `path`. It falls when we die, and with us what we started."""
    import fcntl

    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            tell("another process is making the server's environment; waiting for it ...")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _make(wanted: Plan, tell: Tell, lock: int) -> None:
    began = time.monotonic()
    base = _base_python()
    tell(f"making the local server's environment in {wanted.folder}, once for all notebooks ...")
    program = _uv(wanted, tell)
    venv = [program, "venv", "--no-project", "--python", base.path if base else _OLDEST, wanted.folder]
    _run(wanted, venv, tell, lock, fetch_python=base is None)
    listed = os.path.join(wanted.folder, "requirements.txt")
    whole_files.write(listed, wanted.requirements.encode())
    source = ["--no-index", "--find-links", wanted.wheels] if wanted.wheels else []
    install = [program, "pip", "install", "--python", wanted.python, "--requirement", listed, *source]
    _run(wanted, install, tell, lock)
    tell(f"the server's environment is ready, after {time.monotonic() - began:.0f} s.")


def _base_python() -> Interpreter | None:
    """The Python to build on: this one, else one of the machine; None if there is none new enough."""
    if sys.version_info >= server_requirements.OLDEST_PYTHON:
        return Interpreter(sys.executable, _dotted(sys.version_info[:3]))
    fitting = [each for each in interpreters() if _minor(each) >= server_requirements.OLDEST_PYTHON]
    known = [each for each in fitting if _minor(each) <= _NEWEST_KNOWN]
    return next(iter(known or reversed(fitting)), None)


def _minor(python: Interpreter) -> tuple[int, ...]:
    return tuple(map(int, python.version.split(".")[:2]))


def _dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))


def _uv(wanted: Plan, tell: Tell) -> str:
    """uv, fetched by pip where there is none: that is a program and needs no environment."""
    base = _base_python()
    version = server_requirements.pinned_version("uv")
    tools = os.path.join(wanted.home, "tools", f"uv-{version}")
    program = os.path.join(tools, "bin", "uv")
    found = uv.found()
    if found is not None or os.access(program, os.X_OK):
        return found or program
    tell("fetching uv, which makes environments ...")
    source = ["--no-index", "--find-links", wanted.wheels] if wanted.wheels else []
    # As if for the oldest Python of the server: uv itself needs none, whichever pip fetches it.
    options = ["--only-binary=:all:", "--no-deps", "--python-version", _OLDEST, "--target", tools, *source]
    complaints = ""
    for python in dict.fromkeys([sys.executable, base.path if base else sys.executable]):
        shutil.rmtree(tools, ignore_errors=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options, f"uv=={version}"]
        said = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if said.returncode == 0:
            return program
        complaints = complaints or said.stdout.decode("utf-8", "replace")
    raise _not_made(wanted, complaints or "there is neither uv nor pip")


def _run(wanted: Plan, command: Sequence[str], tell: Tell, lock: int, fetch_python: bool = False) -> None:
    environment = uv.environment_for(os.environ, uv.cache_folder(wanted.home))
    if fetch_python:
        environment["UV_PYTHON_DOWNLOADS"] = "automatic"

    def tell_some(line: str) -> None:
        if line.lstrip().startswith(_WORTH_TELLING):
            tell(line.strip())

    said = commands.run(command, environment, root(wanted.home), tell_some, keep_open=[lock])
    if not said.ok:
        raise _not_made(wanted, said.complaints)


def _not_made(wanted: Plan, complaints: str) -> Unavailable:
    lines = [line.strip() for line in complaints.splitlines() if line.strip() and not line.startswith("WARNING")]
    said = " ".join(lines[-6:])
    more = "".join(f" --extra {extra}" for extra in wanted.extras)
    if wanted.wheels:
        return Unavailable(f"The server's environment could not be made from the wheels in {wanted.wheels}: {said}")
    base = _base_python()
    minor = _dotted(_minor(base)) if base else _OLDEST
    return Unavailable(
        f"The server's environment could not be made: {said}\n"
        "It is made once, from the package index. On a machine that reaches one:\n"
        f"    lapis prepare-server{more}\n"
        "On a machine that does not, bring a folder of wheels\n"
        f"    pip download --only-binary=:all: --python-version {minor} --dest WHEELS "
        f"--requirement {server_requirements.PINNED_FILE}\n"
        "and make it from there:\n"
        f"    lapis prepare-server --find-links WHEELS{more}\n"
        "Or name an interpreter that has lapis-ml[server] installed in LAPIS_PYTHON."
    )
