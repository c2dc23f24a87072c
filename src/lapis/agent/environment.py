"""Enters the environment of a run, and finds its MPI: there as a rule, installed here where this node has none."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from lapis.agent.crew import Canceled
from lapis.domain.job import Mpi
from lapis.domain.launch import Container, Work
from lapis.environments import own_open_mpi
from lapis.environments.build import abandon_if_changed, build_and_hold
from lapis.environments.resolve import number_of_packages
from lapis.environments.values import Lock
from lapis.machine.commands import Stopped, Tell

_HELD: list[tuple[str, int]] = []  # the environment that this process is in, and the file that says so


def enter(work: Work, log: str, canceled: Callable[[], bool]) -> Work:
    """The work with the interpreter of its environment, variables that the packages need, and the container if any;
    for a job that MPI starts also with its mpirun.

    The environment is held as long as this process and the keeper it forks live, so that nobody prunes it.
    """
    root = work.launch.environments
    if root is None:
        return work

    def say(line: str) -> None:
        with open(log, "a") as file:
            file.write(f"Lapis: {line}\n")

    try:
        if work.launch.lock is not None:
            work = _entered(work, Lock.from_json(work.launch.lock), root, say, canceled)
        if isinstance(work.job.distribution, Mpi):
            work = replace(work, mpirun=own_open_mpi.mpirun(work.job.python, root, say, canceled))
    except Stopped:
        raise Canceled("while its environment was being built") from None
    return work


def leave() -> None:
    """After the script: an environment that it changed is built anew for the next, once nobody else is in it."""
    while _HELD:
        abandon_if_changed(*_HELD.pop())


def _entered(work: Work, lock: Lock, root: str, say: Tell, canceled: Callable[[], bool]) -> Work:
    folder, file = build_and_hold(lock, None, root, say, canceled)
    _HELD.append((folder, file))
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
