"""Every Python of this machine that environments can be built on."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Iterable

from lapis.domain import settings

OLDEST = (3, 7)
_ANSWER_WITHIN = 10.0  # seconds; one that hangs is as good as none

# What it says of itself, and whether it has the parts of the library without which packages do not install or import.
_QUESTION = """
import sys
from importlib.machinery import PathFinder
lacks = [name for name in ("_ctypes", "_ssl", "zlib", "venv")
         if name not in sys.builtin_module_names and PathFinder.find_spec(name) is None]
print(sys.implementation.name, sys.version_info[3], ".".join(map(str, sys.version_info[:3])), *lacks)
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python of this machine."""

    path: str
    version: str  # whole: 3.8.18
    source: str = "system"  # or pyenv, uv, conda


_known: dict[tuple[str, int], str] = {}  # versions by path and time of the file; empty: it cannot be used


def interpreters() -> list[Interpreter]:
    """The newest first; of one version the one that LAPIS_PYTHON names, then this very one. Each has been tried."""
    found: dict[str, Interpreter] = {}
    candidates = [(os.path.realpath(path), source) for path, source in _candidates()]
    _ask(path for path, _ in candidates)
    for path, source in candidates:
        version = _known.get(_key(path))
        if version:
            found.setdefault(path, Interpreter(path, version, source))
    preferred = settings.load().python
    first = os.path.realpath(preferred) if preferred else ""

    def rank(each: Interpreter) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
        version = tuple(map(int, each.version.split(".")))
        return version[:2], each.path == first, version

    return sorted(found.values(), key=rank, reverse=True)


def prefixes(program: str) -> list[str]:
    """The installations that an interpreter is made of: its environment's, and the one below it. Not the system's."""
    found = []
    while os.path.isabs(program):
        prefix = os.path.dirname(os.path.dirname(program))
        if glob.glob(os.path.join(glob.escape(prefix), "lib", "python*")) and prefix not in ("/", "/usr", "/usr/local"):
            found.append(prefix)
        if not os.path.islink(program):
            break
        program = os.path.normpath(os.path.join(os.path.dirname(program), os.readlink(program)))
    return found


def _candidates() -> list[tuple[str, str]]:
    home = os.path.expanduser("~")
    pyenv = os.environ.get("PYENV_ROOT") or os.path.join(home, ".pyenv")
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    of_uv = os.environ.get("UV_PYTHON_INSTALL_DIR") or os.path.join(data, "uv", "python")
    conda = [os.path.join(home, name) for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge")]
    conda += ["/opt/conda", *filter(None, [os.environ.get("CONDA_PREFIX"), os.environ.get("MAMBA_ROOT_PREFIX")])]
    shims = os.path.join(pyenv, "shims")
    path = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder and folder != shims]
    places = [
        ("system", [settings.load().python or "", sys.executable]),
        ("pyenv", [os.path.join(pyenv, "versions", "*", "bin", "python")]),
        ("uv", [os.path.join(of_uv, "cpython-*", "bin", "python3")]),
        ("conda", [os.path.join(each, *more, "bin", "python") for each in conda for more in ((), ("envs", "*"))]),
        ("system", [os.path.join(folder, "python3*") for folder in (*path, "/usr/bin", "/usr/local/bin")]),
    ]
    found = [(path, source) for source, patterns in places for pattern in patterns for path in glob.glob(pattern)]
    found = [(path, source) for path, source in found if _is_python(path)]
    return [(path, _source_of(path, source, pyenv)) for path, source in found]


def _is_python(path: str) -> bool:
    """python3, python3.8, python; not python3-config."""
    rest = os.path.basename(path)[len("python") :].replace(".", "")
    return (not rest or rest.isdigit()) and os.access(path, os.X_OK)


def _source_of(path: str, source: str, pyenv: str) -> str:
    return "pyenv" if os.path.realpath(path).startswith(os.path.realpath(pyenv) + os.sep) else source


def _key(path: str) -> tuple[str, int]:
    try:
        return path, os.stat(path).st_mtime_ns
    except OSError:
        return path, 0


def _ask(paths: Iterable[str]) -> None:
    """Ask those that are not known yet, all at once."""
    unknown = [key for key in dict.fromkeys(map(_key, paths)) if key not in _known and key[1]]
    asked = [(key, _started(key[0])) for key in unknown]
    for key, process in asked:
        _known[key] = "" if process is None else _version(process)


def _started(path: str) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            [path, "-I", "-S", "-c", _QUESTION],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


def _version(process: subprocess.Popen[bytes]) -> str:
    with process:
        try:
            output, _ = process.communicate(timeout=_ANSWER_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            return ""
    implementation, level, version, *lacks = output.decode("ascii", "replace").split() or ("", "", "", "")
    usable = implementation == "cpython" and level == "final" and not lacks
    return version if usable and tuple(map(int, version.split(".")[:2])) >= OLDEST else ""
