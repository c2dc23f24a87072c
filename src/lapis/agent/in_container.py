"""Puts the processes of a run into containers: the same user, network, folders and variables as without one."""

from __future__ import annotations

import os
from dataclasses import replace

from lapis.agent.crew import Member
from lapis.domain import settings
from lapis.domain.job import Mpi
from lapis.domain.launch import Container, Work
from lapis.environments import containers
from lapis.errors import UserErrorException
from lapis.machine import own_sources


def wrapped(work: Work, members: list[Member], folder: str) -> list[Member]:
    """The members as they are, or each in a container of its own."""
    wanted = work.container
    if wanted is None:
        return members
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
    folders = _folders(folder, wanted)
    return [_wrapped(member, runtime, wanted, folders, work.launch.number) for member in members]


def _wrapped(member: Member, runtime: str, wanted: Container, folders: list[str], launch: int) -> Member:
    own = [name for name, value in member.variables.items() if _is_the_runs(name, value)]
    own += ["HOME=/tmp"]
    own += [f"PATH={containers.path_with(wanted.environment)}"] if wanted.environment else []
    name = "lapis-" + member.variables["LAPIS_MEMBER"].replace(":", "-") + f"-{launch}"
    argv = containers.inside(runtime, wanted.image, member.argv, own, folders, member.cwd, name, wanted.options)
    return replace(member, argv=argv, container=[runtime, name])


def _is_the_runs(name: str, value: str) -> bool:
    """Not what this machine happens to have set, which means nothing inside."""
    if name == "PATH":
        return False
    return os.environ.get(name) != value or name.startswith(("AZUREML_", "LAPIS_", "PYTHON"))


def _folders(folder: str, wanted: Container) -> list[str]:
    """The run's own, our packages, what Lapis keeps, and wherever links in the run's data lead."""
    found = [os.path.abspath(folder), own_sources.folder(), *own_sources.real_folders(), settings.home()]
    found += [wanted.environment] if wanted.environment else []
    for place, folders, files in os.walk(os.path.join(folder, "data")):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            if os.path.islink(path):
                real = os.path.realpath(path)
                found.append(real if os.path.isdir(real) else os.path.dirname(real))
    return [each for each in dict.fromkeys(found) if os.path.isdir(each)]
