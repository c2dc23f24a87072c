"""Puts the processes of a run into containers: the same user, network and variables as without one, its own folders."""

from __future__ import annotations

import os
from dataclasses import replace

from lapis.agent import reach
from lapis.agent.crew import Member
from lapis.domain.job import Mpi
from lapis.domain.launch import Container, Work
from lapis.environments import containers
from lapis.errors import UserErrorException
from lapis.machine.apart import Reach


def wrapped(work: Work, wanted: Container, members: list[Member], folder: str, head: str | None) -> list[Member]:
    """Each of the members in a container of its own."""
    if isinstance(work.job.distribution, Mpi):
        raise UserErrorException("MPI jobs run without a container: leave the image out, the packages are installed.")
    if any(member.network for member in members):
        raise UserErrorException(
            "Containers have the machine's network: the run's environment is an image, and cannot be used while the "
            "server runs with LAPIS_NODE_NETWORK=namespaces."
        )
    runtime = containers.runtime()
    if runtime is None:
        raise UserErrorException("The run's environment is an image, and neither Docker nor Podman answers now.")
    reach.make_folders(folder)
    members = reach.with_own_variables(members, folder)
    given = reach.of_container(work, members, folder, head)
    return [_wrapped(member, runtime, wanted, given, work.launch.number) for member in members]


def _wrapped(member: Member, runtime: str, wanted: Container, given: Reach, launch: int) -> Member:
    own = [name for name, value in member.variables.items() if _is_the_runs(name, value)]
    own += ["HOME=/tmp"]
    own += [f"PATH={containers.path_with(wanted.environment)}"] if wanted.environment else []
    name = "lapis-" + member.variables["LAPIS_MEMBER"].replace(":", "-") + f"-{launch}"
    readable = [*given.readable, *([wanted.environment] if wanted.environment else [])]
    argv = containers.inside(
        runtime, wanted.image, member.argv, own, given.writable, member.cwd, name, wanted.options, readable
    )
    return replace(member, argv=argv, container=[runtime, name])


def _is_the_runs(name: str, value: str) -> bool:
    """Not what this machine happens to have set, which means nothing inside."""
    if name == "PATH":
        return False
    return os.environ.get(name) != value or name.startswith(("AZUREML_", "LAPIS_", "PYTHON"))
