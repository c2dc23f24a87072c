"""Enters the environment of a run: there already as a rule, built here where this node does not have it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from lapis.agent.data import Canceled
from lapis.domain.launch import Container, Work
from lapis.environments.build import build_and_hold
from lapis.environments.resolve import number_of_packages
from lapis.environments.values import Lock
from lapis.machine.commands import Stopped


def enter(work: Work, log: str, canceled: Callable[[], bool]) -> Work:
    """The work with the interpreter of its environment, variables that the packages need, and the container if any.

    The environment is held as long as this process and the keeper it forks live, so that nobody prunes it.
    """
    if work.launch.lock is None or work.launch.environments is None:
        return work
    lock = Lock.from_json(work.launch.lock)

    def say(line: str) -> None:
        with open(log, "a") as file:
            file.write(f"Lapis: {line}\n")

    try:
        folder, _ = build_and_hold(lock, None, work.launch.environments, say, canceled)
    except Stopped:
        raise Canceled("while its environment was being built") from None
    prefix = "CONDA_PREFIX" if lock.conda else "VIRTUAL_ENV"
    variables = {prefix: folder, **lock.variables, **work.job.environment_variables}
    python = os.path.join(folder, "bin", "python")
    if not lock.image:
        return replace(work, job=replace(work.job, python=python, environment_variables=variables))
    built = bool(number_of_packages(lock.packages))
    if not built:
        del variables[prefix]
    job = replace(work.job, python=python if built else lock.interpreter, environment_variables=variables)
    return replace(work, job=job, container=Container(lock.image, tuple(lock.container), folder if built else None))
