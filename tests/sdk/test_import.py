"""Importing azureml is quick and works in every Python that training scripts still run on."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import azureml

SOURCE = Path(azureml.__path__[0]).parent
OLDEST = (3, 7)
NEWEST = 20  # a minor version that is far away
NEEDS_THE_USERS_PACKAGES = ("lapis.tables.", "lapis.scoring.")  # PyArrow, NumPy, the model's framework

HEAVY = {
    "asyncio",
    "concurrent.futures",
    "ctypes",
    "email",
    "http.client",
    "inspect",
    "logging",
    "multiprocessing",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "urllib.request",
    "uuid",
}


def interpreters() -> dict[str, str]:
    """One Python of each minor version, from pyenv or else from the search path."""
    found = {}
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for python in sorted(versions.glob("3.*/bin/python")):
        match = re.match(r"3\.\d+", python.parts[-3])
        if match:
            found[match.group()] = str(python)
    for minor in range(OLDEST[1], NEWEST):
        on_path = shutil.which(f"python3.{minor}")
        if (
            on_path
            and f"3.{minor}" not in found
            and subprocess.run([on_path, "--version"], capture_output=True).returncode == 0
        ):
            found[f"3.{minor}"] = on_path
    old_enough = {version: path for version, path in found.items() if int(version.split(".")[1]) >= OLDEST[1]}
    return dict(sorted(old_enough.items(), key=lambda item: int(item[0].split(".")[1])))


def light_packages() -> list[str]:
    """As the contract in pyproject.toml lists them."""
    written = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (light,) = (contract for contract in written if contract["name"].startswith("Light packages"))
    return list(light["source_modules"])


every_interpreter = pytest.mark.parametrize("python", [pytest.param(p, id=v) for v, p in interpreters().items()])


def run(python: str, code: str) -> str:
    """What `code` prints in a bare `python`, with only Lapis beside the standard library."""
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); {code}"
    done = subprocess.run([python, "-I", "-S", "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@every_interpreter
def test_importing_core_loads_nothing_heavy(python: str) -> None:
    loaded = run(python, "before = set(sys.modules); import azureml.core; print(*set(sys.modules) - before)").split()
    assert "azureml.core" in loaded
    assert HEAVY.intersection(loaded) == set()
    assert [name for name in loaded if name.startswith("lapis.sdk.")] != []
    assert {"lapis.errors", "lapis.domain", "azureml.data", "azureml.core.compute"}.isdisjoint(loaded)


@every_interpreter
@pytest.mark.parametrize("name", ["Run", "Model", "Dataset"])
def test_a_name_that_scripts_begin_with_brings_next_to_nothing_of_the_standard_library(python: str, name: str) -> None:
    """Each of these takes longer to import than all of Lapis that the name needs."""
    code = f"before = set(sys.modules); from azureml.core import {name}; print(*set(sys.modules) - before)"
    dear = {*HEAVY, "collections", "copy", "dataclasses", "datetime", "enum", "hashlib", "json", "random", "re",
            "threading", "typing", "urllib.parse"}  # fmt: skip
    assert dear.intersection(run(python, code).split()) == set()


@every_interpreter
def test_one_name_of_core_does_not_bring_the_others(python: str) -> None:
    loaded = run(python, "from azureml.core import diagnostic_log; print(*sys.modules)").split()
    assert "lapis.sdk.base.diagnostic_log" in loaded
    assert {"lapis.sdk.workspace.workspace", "lapis.sdk.runs.run", "lapis.sdk.base.missing_names"}.isdisjoint(loaded)


@every_interpreter
def test_every_module_of_every_light_package_can_be_imported(python: str) -> None:
    """Two may lack a package that is the user's to have: a module of theirs that does, says so and nothing else."""
    code = (
        "import importlib, pkgutil\n"
        f"for name in {light_packages()!r}:\n"
        "    package = importlib.import_module(name)\n"
        "    for module in pkgutil.walk_packages(getattr(package, '__path__', []), name + '.'):\n"
        "        try:\n"
        "            importlib.import_module(module.name)\n"
        "        except Exception as error:\n"
        f"            missing = module.name.startswith({NEEDS_THE_USERS_PACKAGES!r})\n"
        "            if not missing or type(error).__name__ not in ('ModuleNotFoundError', 'UserErrorException'):\n"
        "                raise"
    )
    run(python, f"exec({code!r})")
