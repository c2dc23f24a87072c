"""Conda packages, through conda or micromamba where one is there: solved first, then linked into the environment.

Only packages in conda's own list need it. What pip's list names, and a bare `python=3.8`, is uv's work as everywhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lapis.environments import package_facts, tools
from lapis.environments.package_lines import conda_package
from lapis.environments.recipe import recipe
from lapis.environments.values import NOBODY, Lock, Recipe, Submitter
from lapis.environments.versions import version
from lapis.errors import Unavailable, UserErrorException
from lapis.machine import surroundings
from lapis.machine.commands import Canceled, Tell, never
from lapis.machine.interpreters import Interpreter

_COMMANDS = ("micromamba", "mamba", "conda")
# The last is the newest that Lapis is tested on.
_PYTHONS = tuple(f"3.{minor}" for minor in range(version(package_facts.OLDEST_PYTHON)[1], 14))
_DEFAULT_CHANNELS = ("conda-forge",)
_AWAY = (
    "CondaHTTPError",
    "ConnectionError",
    "Could not resolve host",
    "Download error",
    "Failed to connect",
    "offline",
)
_QUIET = {"CONDA_NO_PROMPT": "1", "CI": "1"}  # nobody is there to answer
# Else packages are hard links: what a run appends to one would be in every environment to come.
_COPIES = {"CONDA_ALWAYS_COPY": "1", "MAMBA_ALWAYS_COPY": "1"}


def command() -> str | None:
    """The command that installs conda packages on this machine. LAPIS_CONDA names it, or is `off`."""
    given = os.environ.get("LAPIS_CONDA", "")
    if given == "off":
        return None
    if given:
        found = shutil.which(given)
        if found is None:
            raise UserErrorException(
                f"LAPIS_CONDA is '{given}', and there is no such command. Name conda or micromamba, or set it to off: "
                "then conda's names are looked up on PyPI."
            )
        return found
    known = [os.environ.get("MAMBA_EXE"), os.environ.get("CONDA_EXE"), *map(shutil.which, _COMMANDS)]
    return next((path for path in known if path and os.access(path, os.X_OK)), None)


def wanted(definition: Mapping[str, Any]) -> list[str]:
    """What only conda can be asked for: its own list, without Python, pip and what Lapis is."""
    found = []
    for line in _dependencies(definition):
        if isinstance(line, str):
            name = conda_package(line).name
            if name not in ("python", "pip") and name.split("-")[0] != "azureml":
                found.append(line.strip())
    return found


def plan(
    definition: Mapping[str, Any], *, gpu: bool, strict: bool, mpi: bool, horovod_in: str, submitter: Submitter = NOBODY
) -> Recipe:
    """The recipe of pip's part, and what conda has to bring: it has every Python."""
    rest = [line for line in _dependencies(definition) if line not in wanted(definition)]
    section = (definition.get("python") or {}).get("condaDependencies") or {}
    python = {**(definition.get("python") or {}), "condaDependencies": {**section, "dependencies": rest}}
    how: dict[str, Any] = {"gpu": gpu, "strict": strict, "mpi": mpi, "horovod_in": horovod_in, "submitter": submitter}
    made = recipe({**definition, "python": python}, pythons=_PYTHONS, **how)
    channels = tuple(str(each) for each in section.get("channels") or ()) or _DEFAULT_CHANNELS
    return replace(made, conda=(_python(rest, made.python), *wanted(definition)), channels=channels)


def _dependencies(definition: Mapping[str, Any]) -> list[Any]:
    section = (definition.get("python") or {}).get("condaDependencies") or {}
    return list(section.get("dependencies") or [])


def _python(lines: Sequence[Any], chosen: str) -> str:
    """As the user wrote it, if that is the one which was chosen."""
    for line in lines:
        if isinstance(line, str) and conda_package(line).name == "python":
            package = conda_package(line)
            if package.limits and package.span.meets(conda_package(f"python={chosen}").span):
                return line.strip()
    return f"python={chosen}"


def solve(made: Recipe, root: str, tell: Tell, canceled: Canceled = never) -> tuple[tuple[str, ...], Interpreter]:
    """Every conda package, exactly; and the Python among them."""
    tool = _the_command()
    tell(f"{os.path.basename(tool)} solves {', '.join(made.conda)} from {', '.join(made.channels)}")
    nowhere = os.path.join(root, ".solving")
    asked = [tool, "create", "--dry-run", "--json", "--yes", "--prefix", nowhere, *_channels(made.channels)]
    said = tools.run([*asked, *made.conda], root, _surroundings(root), canceled=canceled)
    answer = _json(said.output)
    links = (answer.get("actions") or {}).get("LINK") or []
    if not said.ok or not links:
        raise _failure(tool, made, answer, said.complaints)
    exact = sorted(f"{each['name']}={each['version']}={each.get('build_string') or each['build']}" for each in links)
    python = next((each["version"] for each in links if each["name"] == "python"), None)
    if python is None:
        raise UserErrorException(f"{os.path.basename(tool)} found no Python for {', '.join(made.conda)}.")
    return tuple(exact), Interpreter("", python, "conda channel")


def python_packages(exact: Sequence[str]) -> tuple[str, ...]:
    """As constraints on pip's part: what conda brings stays as it is. For names that pip does not ask for, idle."""
    pairs = [each.split("=")[:2] for each in exact]
    return tuple(f"{name}=={number}" for name, number in pairs if re.fullmatch(r"[0-9]+(\.[0-9]+)*", number))


def create(lock: Lock, folder: str, say: Tell, canceled: Canceled, keep_open: int) -> None:
    """Link exactly what the lock names into `folder`."""
    tool = _the_command()
    say(f"{os.path.basename(tool)} links {len(lock.conda)} conda packages")
    asked = [tool, "create", "--yes", "--quiet", "--no-deps", "--prefix", folder, *_channels(lock.channels)]
    root = os.path.dirname(folder)
    said = tools.run([*asked, *lock.conda], root, _surroundings(root), say, canceled, [keep_open])
    if not said.ok:
        last = "\n".join((said.complaints or said.output).strip().splitlines()[-15:])
        raise UserErrorException(f"{os.path.basename(tool)} could not install the conda packages. It says:\n{last}")


def _the_command() -> str:
    found = command()
    if found is None:
        raise UserErrorException(
            "The environment has conda packages, and neither conda nor micromamba is on this machine any more. Submit "
            "again: they are looked up on PyPI then."
        )
    return found


def _channels(channels: Sequence[str]) -> list[str]:
    return ["--override-channels", *(part for each in channels for part in ("--channel", each))]


def _surroundings(root: str) -> dict[str, str]:
    kept = {"CONDA_PKGS_DIRS": os.path.join(os.path.dirname(os.path.abspath(root)), "cache", "conda")}
    return {**kept, **surroundings.harmless(os.environ), **_QUIET, **_COPIES}


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text[text.index("{") :])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _failure(tool: str, made: Recipe, answer: Mapping[str, Any], complaints: str) -> Exception:
    problems = answer.get("solver_problems")
    said = "; ".join(problems) if problems else str(answer.get("message") or answer.get("error") or complaints).strip()
    name = os.path.basename(tool)
    if any(sign in said + complaints for sign in _AWAY):
        return Unavailable(
            f"{name} cannot reach {', '.join(made.channels)}: {said[-300:]} Try again later; or set LAPIS_CONDA=off, "
            "and conda's names are looked up on PyPI."
        )
    return UserErrorException(
        f"{name} finds no packages for {', '.join(made.conda)} in {', '.join(made.channels)}: "
        f"{said[-1500:] or 'it does not say why'}"
    )
