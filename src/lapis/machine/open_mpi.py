"""Open MPI on this machine: what is there, and what of it is Open MPI's at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

MPIRUN = "mpirun"
_LIBRARY = os.path.join("lib", "libmpi.so.40")  # of Open MPI 4 and 5
_PATIENCE = 30.0  # seconds


def find_mpirun(python: str | None = None) -> str | None:
    """That of the run's environment, else of the machine. One of another MPI is passed over."""
    beside = [os.path.dirname(python)] if python else []
    for folder in [*beside, *os.environ.get("PATH", os.defpath).split(os.pathsep)]:
        found = shutil.which(MPIRUN, path=folder) if folder else None
        if found and major_version(found) is not None:
            return found
    return None


def major_version(mpirun: str) -> int | None:
    """4 or 5, say; None if it is another MPI's."""
    found = re.search(r"Open MPI\)? v?(\d+)", _said([mpirun, "--version"]))
    return int(found[1]) if found else None


def can_compile() -> bool:
    """Whether the machine's own Open MPI has its compiler and its headers."""
    return any(os.path.exists(os.path.join(folder, "mpi.h")) for folder in compiler_says("incdirs").split())


def compiler_says(what: str) -> str:
    """What the compiler of the machine's Open MPI says about itself; nothing if there is none."""
    compiler = shutil.which("mpicxx")
    return _said([compiler, f"--showme:{what}"]).strip() if compiler else ""


def libraries(mpirun: str) -> str | None:
    """The folder of its libraries, where the linker does not look by itself.

    Not that of a conda environment: it holds everything else too, which programs of the machine would find then.
    """
    prefix = os.path.dirname(os.path.dirname(mpirun))
    if not os.path.exists(os.path.join(prefix, _LIBRARY)) or os.path.isdir(os.path.join(prefix, "conda-meta")):
        return None
    return os.path.join(prefix, "lib")


def _said(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
