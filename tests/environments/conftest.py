"""A folder of wheels made here, and a root of environments of its own: no test of these needs a network."""

from __future__ import annotations

import io
import os
import sys
import tarfile
from pathlib import Path

import pytest

from lapis.environments import in_use
from lapis.environments.resolve import resolve
from lapis.environments.values import Lock, Recipe
from lapis.machine.interpreters import Interpreter, interpreters
from lapis.testing import until
from tests.wheels import make_wheel

_SLOW_BACKEND = """
import os, time, zipfile
NAME, GATE = {name!r}, {gate!r}

def build_wheel(folder, settings=None, metadata=None):
    with open(GATE + ".reached", "a") as file:
        file.write(str(os.getpid()) + "\\n")
    while not os.path.exists(GATE):
        time.sleep(0.01)
    path = NAME + "-1.0-py3-none-any.whl"
    info = NAME + "-1.0.dist-info/"
    with zipfile.ZipFile(os.path.join(folder, path), "w") as wheel:
        wheel.writestr(NAME + ".py", "VERSION = '1.0'")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: " + NAME + "\\nVersion: 1.0\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", NAME + ".py,,\\n")
    return path
"""


@pytest.fixture(autouse=True)
def _open_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests build writes where they look for it, however far apart it runs; their own commands are Python's."""
    opened = [str(tmp_path_factory.getbasetemp()), sys.base_prefix]
    monkeypatch.setenv("LAPIS_OPEN_FOLDERS", os.pathsep.join(opened))


class Shop:
    """Wheels, and what is built of them."""

    def __init__(self, folder: Path) -> None:
        self.wheels = folder / "wheels"
        self.root = str(folder / "home" / "environments")
        self.gate = folder / "gate"
        self.told: list[str] = []
        make_wheel(self.wheels, "toy", "1.0", requires=("helper>=2",))
        make_wheel(self.wheels, "toy", "2.0")
        make_wheel(self.wheels, "helper", "2.1")
        make_wheel(self.wheels, "helper", "1.0")

    def recipe(self, *requirements: str, python: Interpreter | None = None) -> Recipe:
        options = ("--no-index", f"--find-links {self.wheels}")
        return Recipe((python or this_python()).version, requirements, pip_options=options)

    def lock(self, *requirements: str, python: Interpreter | None = None) -> Lock:
        used = python or this_python()
        return resolve(self.recipe(*requirements, python=used), used, self.told.append, root=self.root)

    def add_slow_source(self, name: str) -> None:
        """A source package whose build says in `gate.reached` that it began, and waits until `gate` is there."""
        needs = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        files = {
            "pyproject.toml": f"{needs}[project]\nname = '{name}'\nversion = '1.0'\n",
            "backend.py": _SLOW_BACKEND.format(name=name, gate=str(self.gate)),
            "PKG-INFO": f"Metadata-Version: 2.2\nName: {name}\nVersion: 1.0\n",
        }
        with tarfile.open(self.wheels / f"{name}-1.0.tar.gz", "w:gz") as archive:
            for file, text in files.items():
                entry = tarfile.TarInfo(f"{name}-1.0/{file}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))

    @property
    def reached(self) -> Path:
        return Path(f"{self.gate}.reached")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def until_free(root: str, name: str) -> int:
    """The lock of an environment, once nobody holds it: the process that compiles its bytecode may, for a while."""
    return until(lambda: in_use.take(root, name))


def this_python() -> Interpreter:
    wanted = ".".join(map(str, sys.version_info[:3]))
    return next(each for each in interpreters() if each.version == wanted)
