"""Packages of years ago come as source and expect the build tools of their time: they get them if today's fail."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence

from lapis.environments import explain, tools
from lapis.machine.commands import Said, Tell

# The last tools that still did what the sources of 2015 to 2021 rely on: 2to3, setup_requires, lenient versions.
_TOOLS = ("setuptools<58", "wheel<0.38", "cython<3")
# setuptools before 66 does not start there.
_TOOLS_SINCE_3_12 = ("setuptools<70", "cython<3")


# What a package imports while it is built, where it is not enough to name it: it has to be of that time too.
_OF_THAT_TIME = {"cython": "cython<3", "numpy": "numpy<2", "pystan": "pystan<3", "sklearn": "scikit-learn"}
_UNSAID = re.compile(r"indicates that `([^`@]+)@[^`]*` depends on `([^`]+)`,? but doesn't\s+declare it")
_ROUNDS = 3  # each finds one more


def tried(call: Callable[[Sequence[str]], Said], folder: str, python: str, tell: Tell) -> Said:
    """What `call` says, given no more options; where a build failed, given those that bring the old build tools, and
    what a package imports when it is built without saying so.
    """
    said = call(())
    if said.ok or not explain.build_failed(said.complaints):
        return said
    tools = _TOOLS if tuple(map(int, python.split(".")[:2])) < (3, 12) else _TOOLS_SINCE_3_12
    tell(f"A package does not build with today's tools; trying those of its time: {', '.join(tools)}")
    options = ["--build-constraint", _written(folder, "build-constraints.txt", tools)]
    again = call(options)
    needs: dict[str, list[str]] = {}
    for _ in range(_ROUNDS):
        unsaid = _UNSAID.search(again.complaints)
        if again.ok or unsaid is None:
            break
        package, need = unsaid[1], _OF_THAT_TIME.get(unsaid[2].lower(), unsaid[2])
        tell(f"{package} needs {need} to be built, and does not say so; building it with that")
        needs.setdefault(package, []).append(need)
        again = call([*options, "--config-file", _written(folder, "build-needs.toml", _settings(needs))])
    return again if again.ok else said


def _settings(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """The user's own settings of uv, which a file that is named takes the place of, and what the packages need."""
    lines = []
    path = tools.settings_of_uv()
    if path is not None:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    return [*lines, "[extra-build-dependencies]", *(f"{name} = {json.dumps(found)}" for name, found in needs.items())]


def _written(folder: str, name: str, lines: Sequence[str]) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path
