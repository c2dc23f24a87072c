"""Packages of years ago come as source and expect the build tools of their time: they get them if today's fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from lapis.environments import explain
from lapis.machine.commands import Said, Tell

# The last tools that still did what the sources of 2015 to 2021 rely on: 2to3, setup_requires, lenient versions.
_TOOLS = ("setuptools<58", "wheel<0.38", "cython<3")
# setuptools before 66 does not start there.
_TOOLS_SINCE_3_12 = ("setuptools<70", "cython<3")


def tried(call: Callable[[Sequence[str]], Said], folder: str, python: str, tell: Tell) -> Said:
    """What `call` says, given no more options; where a build failed, given those that bring the old build tools."""
    said = call(())
    if said.ok or not explain.build_failed(said.complaints):
        return said
    tools = _TOOLS if tuple(map(int, python.split(".")[:2])) < (3, 12) else _TOOLS_SINCE_3_12
    tell(f"A package does not build with today's tools; trying those of its time: {', '.join(tools)}")
    path = os.path.join(folder, "build-constraints.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{tool}\n" for tool in tools)
    again = call(("--build-constraint", path))
    return again if again.ok else said
