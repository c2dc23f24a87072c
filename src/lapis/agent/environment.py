"""Enters the environment of a run, and finds its MPI: there as a rule, installed here where this node has none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from lapis.agent.data import Canceled
from lapis.environments import own_open_mpi
from lapis.environments.build import build_and_hold
from lapis.environments.resolve import number_of_packages
from lapis.environments.values import Lock
from lapis.machine.commands import Stopped, Tell
from lapis.machine.open_mpi import MPIRUN


def enter(job: Mapping[str, Any], log: str, canceled: Callable[[], bool]) -> dict[str, Any]:
    """What changes in the job: its interpreter, variables that the packages need, and for MPI jobs the mpirun.

    The environment is held as long as this process and the keeper it forks live, so that nobody prunes it.
    """

    def say(line: str) -> None:
        with open(log, "a") as file:
            file.write(f"Lapis: {line}\n")

    mpi = (job.get("distribution") or {}).get("kind") == "mpi"
    try:
        changes = _entered(job, say, canceled) if job.get("lock") else {}
        if mpi:
            python = changes.get("python") or job.get("python")
            changes[MPIRUN] = own_open_mpi.mpirun(python, job["environments"], say, canceled)
    except Stopped:
        raise Canceled("while its environment was being built") from None
    return changes


def _entered(job: Mapping[str, Any], say: Tell, canceled: Callable[[], bool]) -> dict[str, Any]:
    lock = Lock.from_json(job["lock"])
    folder, _ = build_and_hold(lock, None, job["environments"], say, canceled)
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
