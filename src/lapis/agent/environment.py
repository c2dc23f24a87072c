"""Enters the environment of a run: there already as a rule, built here where this node does not have it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from lapis.agent.data import Canceled
from lapis.environments.build import build_and_hold
from lapis.environments.resolve import number_of_packages
from lapis.environments.values import Lock
from lapis.machine.commands import Stopped


def enter(job: Mapping[str, Any], log: str, canceled: Callable[[], bool]) -> dict[str, Any]:
    """What changes in the job: its interpreter, and variables that the packages need.

    The environment is held as long as this process and the keeper it forks live, so that nobody prunes it.
    """
    if not job.get("lock"):
        return {}
    lock = Lock.from_json(job["lock"])

    def say(line: str) -> None:
        with open(log, "a") as file:
            file.write(f"Lapis: {line}\n")

    try:
        folder, _ = build_and_hold(lock, None, job["environments"], say, canceled)
    except Stopped:
        raise Canceled("while its environment was being built") from None
    prefix = "CONDA_PREFIX" if lock.conda else "VIRTUAL_ENV"
    variables = {prefix: folder, **lock.variables, **(job.get("environment_variables") or {})}
    python = os.path.join(folder, "bin", "python")
    if not lock.image:
        return {"python": python, "environment_variables": variables}
    built = bool(number_of_packages(lock.packages))
    if not built:
        del variables[prefix]
    container = {"image": lock.image, "options": list(lock.container), "environment": folder if built else None}
    python = python if built else lock.interpreter
    return {"python": python, "environment_variables": variables, "container": container}
